"""Recipes are lines that can be copied: every file they name is there, and the page keeps each whole."""

import json
import shlex
from pathlib import Path

import pytest

from teller_core.calls import parser
from teller_core.cli import VERBS, main
from teller_core.collect.doctor.recipes import ENGINES, Door, recipe
from teller_core.collect.environment import LOG_CONFIG, PLUGIN
from teller_core.data.report_recording import DoctorReport, RecipeReport
from teller_core.errors import InputError
from teller_core.tell.layout import Style
from teller_core.tell.text import page
from tests.studies.doors import printed, recipe_of

DOORS: tuple[Door, Door] = ("plugin", "flags")


def made(engine: str, tier: str, door: Door = "plugin", *, helm: bool = False) -> RecipeReport:
    found = recipe(engine, tier, door, Path("records"), helm=helm).recipe
    assert found is not None
    return found


def test_the_command_line_offers_every_engine_that_has_a_recipe() -> None:
    for engine in ENGINES:
        assert parser(VERBS).parse_args(["doctor", "--print", engine]).engine == engine


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("tier", ["T1", "T2"])
@pytest.mark.parametrize("door", DOORS)
def test_every_engine_has_a_recipe_whose_files_are_there(engine: str, tier: str, door: Door) -> None:
    found = made(engine, tier, door)
    assert found.gives
    assert found.then
    for name in ("PYTHONPATH", "VLLM_LOGGING_CONFIG_PATH"):
        if name in found.environment:
            assert Path(found.environment[name]).exists()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("door", DOORS)
def test_what_is_to_be_done_can_be_pasted_whatever_the_folder_is_called(engine: str, door: Door) -> None:
    folder = Path("my records").absolute()
    found = recipe(engine, "T2", door, folder).recipe
    assert found is not None
    for line in found.then:
        first, *words = shlex.split(line, comments=True)
        assert first in ("mkdir", "COMMAND", "teller")
        assert any(Path(word) == folder or Path(word).parent == folder for word in words)


def test_the_plugin_alone_gives_requests_and_one_switch_more_gives_steps() -> None:
    assert made("vllm", "T1").arguments == []
    assert made("vllm", "T2").arguments == ["--enable-logging-iteration-details"]


@pytest.mark.parametrize("tier", ["T1", "T2"])
def test_lines_of_the_log_have_their_place_in_time_at_either_tier(tier: str) -> None:
    assert "VLLM_LOGGING_CONFIG_PATH" in made("vllm", tier, "flags").environment


def test_what_was_never_run_says_so() -> None:
    assert made("sglang", "T2").tested is None
    assert made("vllm", "T2").tested == "0.32"


def test_the_configuration_of_the_log_has_microseconds_and_the_process() -> None:
    config = json.loads(LOG_CONFIG.read_text())
    assert "%(created)f %(process)s" in config["formatters"]["json"]["format"]


def test_the_configuration_of_the_log_leaves_uvicorn_its_lines() -> None:
    assert {"uvicorn", "uvicorn.access"} <= json.loads(LOG_CONFIG.read_text())["loggers"].keys()


def test_values_of_the_chart_mount_every_file_of_the_plugin_where_it_is_looked_for() -> None:
    helm = made("vllm", "T2", helm=True).helm or ""
    entries = [path.relative_to(PLUGIN) for path in PLUGIN.rglob("*") if path.suffix in (".py", ".txt")]
    assert len(entries) == 4
    assert all(f"path: {path}\n" in helm for path in entries)
    assert 'value: "/etc/teller"' in helm
    assert 'extraArgs: ["--enable-logging-iteration-details"]' in helm


def test_values_without_the_plugin_mount_the_configuration_of_the_log_alone() -> None:
    helm = made("vllm", "T2", "flags", helm=True).helm or ""
    assert "teller-logging.json" in helm
    assert "teller_stats.py" not in helm


def test_no_chart_is_known_for_other_engines() -> None:
    with pytest.raises(InputError):
        recipe("sglang", "T1", "flags", Path("records"), helm=True)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("door", DOORS)
def test_lines_for_a_shell_stay_whole_whatever_the_width(width: int, door: Door) -> None:
    report = recipe("vllm", "T2", door, Path("records"))
    assert report.recipe is not None
    lines = page(report, Style(width=width)).splitlines()
    assert shlex.join(report.recipe.arguments) in lines
    assert all(any(line.startswith(f"export {name}=") for line in lines) for name in report.recipe.environment)


@pytest.mark.parametrize("tier", ["T1", "T2"])
@pytest.mark.parametrize("door", DOORS)
def test_the_study_of_the_doors_reads_every_page_as_it_was_meant(tier: str, door: Door) -> None:
    page_of = printed("--print", "vllm", "--door", door, "--tier", tier, "--to", "records")
    found, meant = recipe_of(page_of), made("vllm", tier, door)
    assert found.arguments == meant.arguments
    assert [line.split("=")[0].split()[1] for line in found.shell] == list(meant.environment)
    assert [line for line in found.then if line.startswith("teller import")]


def test_the_command_line_answers_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--print", "vllm", "--json"]) == 0
    report = DoctorReport.model_validate_json(capsys.readouterr().out)
    assert report.subject == "recipe"


def test_a_recipe_of_a_recording_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "somewhere", "--print", "vllm"]) == 2
    assert "recipe" in capsys.readouterr().err


def test_checks_fit_the_page_and_say_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bundle.json").write_text('{"engine": "vllm", "stop_ns": 5, "exit": 0}')
    assert main(["doctor", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "> Check that it does not clear PYTHONPATH" in out
    assert "Of 2 things: 1 missing." in out
