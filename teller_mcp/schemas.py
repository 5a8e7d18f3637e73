"""Schemas as short as they can be: every client sends all of them to its model before the first question."""

from typing import Any, cast

from pydantic import BaseModel

_NOISE = frozenset({"title", "additionalProperties", "maxLength"})
_CUT = frozenset({"left_out", "unsaid", "contrast", "fleet", "instead", "levels", "finish_reason"}) | frozenset(
    {"ranks_note", "judged_by", "model", "reference"}
)


def compact_input(schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments without titles, null defaults and wordy unions."""
    properties = {key: _compact(value) for key, value in schema.get("properties", {}).items()}
    required = {"required": schema["required"]} if schema.get("required") else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


def outline(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of ``model``, top level only: the type of each field, without what its objects hold.

    It is a true but weaker schema. Answers are checked against the whole model before they leave; the README documents it. What
    says how an answer was cut or made, or what it rests on, is left out of it: that speaks for itself.
    """
    full = model.model_json_schema(mode="serialization")
    properties = {key: _outline(value) for key, value in full["properties"].items() if key not in _CUT}
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
