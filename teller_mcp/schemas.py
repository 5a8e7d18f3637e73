"""Schemas as short as they can be: every client sends all of them to its model before the first question."""

from typing import Any, cast

from teller_mcp.answers import Answer

_NOISE = frozenset({"title", "additionalProperties", "maxLength"})


def compact_input(schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments without titles, null defaults and wordy unions."""
    properties = {key: _compact(value) for key, value in schema.get("properties", {}).items()}
    required = {"required": schema["required"]} if schema.get("required") else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


def outline(model: type[Answer]) -> dict[str, Any]:
    """The JSON schema of the fields of ``model`` that a caller looks at first (``KEYS``), without what its objects hold.

    It is a true but weaker schema. Answers are checked against the whole model before they leave; docs/answers.md has it whole.
    """
    full = model.model_json_schema(mode="serialization")
    properties = {key: _outline(full["properties"][key]) for key in (*model.KEYS, "next")}
    return {"type": "object", "properties": properties}


def _outline(field: dict[str, Any]) -> dict[str, Any]:
    branches = cast(list[dict[str, Any]], field.get("anyOf", []))
    if any("$ref" in branch for branch in branches):
        return {"type": ["object" if "$ref" in branch else branch["type"] for branch in branches]}
    return {"type": "object" if "$ref" in field else _union(field)["type"]}


def _compact(field: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in _union(field).items() if key not in _NOISE}
    if kept.get("default", 0) is None:
        # Leaving an argument out says the same as null, so null is accepted and not offered.
        del kept["default"]
        kept["type"] = next(kind for kind in kept["type"] if kind != "null")
    if "enum" in kept:
        del kept["type"]  # its words say it
    if "items" in kept:
        kept["items"] = _compact(kept["items"])
    return kept


def _union(field: dict[str, Any]) -> dict[str, Any]:
    """``anyOf`` plain types as one list of types, with the bounds of its branches."""
    branches = cast(list[dict[str, Any]], field.get("anyOf", []))
    if not branches or any("$ref" in branch or "enum" in branch for branch in branches):
        return field
    merged: dict[str, Any] = {}
    for branch in branches:
        merged.update(branch)
    merged["type"] = [branch["type"] for branch in branches]
    return {**merged, **{key: value for key, value in field.items() if key != "anyOf"}}
