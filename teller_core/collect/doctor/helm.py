"""A recipe as values of the Helm chart of vLLM's production stack; the keys are those of its README, November 2026."""

import json
from pathlib import Path

from teller_core.collect.environment import LOG_CONFIG, PLUGIN
from teller_core.data.report_recording import RecipeReport

MOUNT = Path("/etc/teller")
"""Where the config map with the plugin's files, or the configuration of the log, is mounted."""
RECORDS = Path("/var/lib/teller")
CONFIG_MAP = "teller-plugin"
ROOM = "1Gi"


def values(recipe: RecipeReport) -> str:
    """YAML to merge into the chart's values, behind comments that say how the config map is made and the records are got."""
    variables = {name: _inside(name, value) for name, value in recipe.environment.items()}
    mounted = recipe.door == "plugin" or "VLLM_LOGGING_CONFIG_PATH" in recipe.environment
    files = _files(recipe) if mounted else []
    lines = [
        *(_made_by(files) if mounted else []),
        "servingEngineSpec:",
        "  modelSpec:",
        "    - name: NAME-OF-YOUR-MODEL",
    ]
    if variables:
        lines.append("      env:")
        for name, value in variables.items():
            lines += [f"        - name: {name}", f"          value: {json.dumps(value)}"]
    if recipe.arguments:
        lines += ["      vllmConfig:", f"        extraArgs: {json.dumps(recipe.arguments)}"]
    if mounted:
        lines += _volumes(files, records="TELLER_CAPTURE_DIR" in variables)
    return "\n".join(lines) + "\n"


def _inside(name: str, value: str) -> str:
    """The value of a variable where the folders are those of the container."""
    inside = {
        "PYTHONPATH": str(MOUNT),
        "TELLER_CAPTURE_DIR": str(RECORDS),
        "VLLM_LOGGING_CONFIG_PATH": str(MOUNT / LOG_CONFIG.name),
    }
    return inside.get(name, value)


def _made_by(files: list[Path]) -> list[str]:
    named = " ".join(f"--from-file={path}" for path in files)
    return ["# Once, in the namespace of the engine:", f"#   kubectl create configmap {CONFIG_MAP} {named}"]


def _files(recipe: RecipeReport) -> list[Path]:
    """What the engine needs of the plugin's folder."""
    if recipe.door == "flags":
        return [LOG_CONFIG]
    found = [path for path in PLUGIN.rglob("*") if path.is_file() and path.suffix != ".pyc" and path != LOG_CONFIG]
    return sorted(found)


def _volumes(files: list[Path], *, records: bool) -> list[str]:
    lines = [
        "      extraVolumes:",
        "        - name: teller-plugin",
        "          configMap:",
        f"            name: {CONFIG_MAP}",
    ]
    lines.append("            items:")
    for path in files:
        lines += [f"              - key: {path.name}", f"                path: {path.relative_to(PLUGIN)}"]
    mounts = [f"        - {{name: teller-plugin, mountPath: {MOUNT}, readOnly: true}}"]
    if records:
        lines += ["        - name: teller-records", "          emptyDir:", f"            sizeLimit: {ROOM}"]
        mounts.append(f"        - {{name: teller-records, mountPath: {RECORDS}}}")
    return [*lines, "      extraVolumeMounts:", *mounts]
