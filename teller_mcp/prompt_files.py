"""Prompts from ``prompts/*.md``: TOML between ``+++`` lines, then a ``string.Template`` body.

A variable is declared as a table ``[arguments.NAME]`` with ``description`` and either ``required = true`` or a ``default``.
What the body uses and what the front matter declares must be the same: anything else is refused when the server starts.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.prompts.base import PromptArgument

from teller_core.errors import InputError
from teller_core.tell.visible import visible

MAX_VALUE = 200
"""Characters of a variable's value that are used. It is a request number, an id or a metric."""


@dataclass(frozen=True)
class PromptFile:
    """One prompt as written."""

    name: str
    title: str
    description: str
    required: tuple[str, ...]
    defaults: Mapping[str, str]
    descriptions: Mapping[str, str]
    body: Template


def prompt_folder() -> Traversable:
    """Where the prompts are: inside the package in a wheel, beside it in a checkout."""
    packaged = files("teller_mcp").joinpath("prompts")
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "prompts"


def load_prompts(folder: Traversable) -> list[PromptFile]:
    """Every prompt of ``folder``, by name. Raises InputError for a file that is not as the module says, and for none."""
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".md")), key=lambda entry: entry.name)
    if not found:
        raise InputError("prompts", "the folder of prompts is empty", "Install TELLER again")
    return [parse_prompt(entry.name.removesuffix(".md"), entry.read_text("utf-8")) for entry in found]


def parse_prompt(name: str, text: str) -> PromptFile:
    """The prompt in ``text``. Raises InputError, which names the prompt and the variable that is wrong."""
    _, front, body = _split(name, text)
    try:
        head = tomllib.loads(front)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"prompt {name}", f"its front matter is not TOML ({error})", "Correct the file") from None
    arguments: dict[str, dict[str, str | bool]] = head.get("arguments", {})
    template = Template(body.strip() + "\n")
    _check(name, head, arguments, template)
    return PromptFile(
        name=name,
        title=head["title"],
        description=head["description"],
        required=tuple(key for key, field in arguments.items() if field.get("required")),
        defaults={key: str(field["default"]) for key, field in arguments.items() if "default" in field},
        descriptions={key: str(field["description"]) for key, field in arguments.items()},
        body=template,
    )


def render(prompt: PromptFile, values: Mapping[str, str]) -> str:
    """The text of ``prompt``. Raises InputError for a required variable that has no value."""
    for key in prompt.required:
        if not values.get(key):
            raise InputError(f"prompt {prompt.name}", f"the variable {key} has no value", f"Give {key}")
    given = {key: _clean(value) for key, value in values.items() if value}
    return prompt.body.substitute({**prompt.defaults, **given})


def as_mcp(prompt: PromptFile) -> Prompt:
    """``prompt`` as the SDK serves it."""

    def fill(**values: str) -> str:
        return render(prompt, values)

    arguments = [
        PromptArgument(name=key, description=description, required=key in prompt.required)
        for key, description in prompt.descriptions.items()
    ]
    return Prompt(name=prompt.name, title=prompt.title, description=prompt.description, arguments=arguments, fn=fill)  # pyright: ignore[reportCallIssue]  # pydantic fields with defaults


def _split(name: str, text: str) -> list[str]:
    parts = text.split("+++\n", 2)
    if len(parts) != 3 or parts[0].strip():
        raise InputError(f"prompt {name}", "it does not start with TOML between +++ lines", "Correct the file")
    return parts


def _check(
    name: str, head: Mapping[str, object], arguments: Mapping[str, Mapping[str, object]], body: Template
) -> None:
    for key in ("title", "description"):
        if not isinstance(head.get(key), str):
            raise InputError(f"prompt {name}", f"its front matter has no {key}", "Add it")
    if not body.is_valid():
        raise InputError(f"prompt {name}", "a $ of its text starts no variable", "Write $$ for a dollar sign")
    used = set(body.get_identifiers())
    for key in used - set(arguments):
        raise InputError(f"prompt {name}", f"its text uses {key}, which it does not declare", f"Add [arguments.{key}]")
    for key, field in arguments.items():
        if key not in used:
            raise InputError(f"prompt {name}", f"it declares {key}, which its text does not use", "Remove it")
        if not isinstance(field.get("description"), str) or bool(field.get("required")) == ("default" in field):
            raise InputError(
                f"prompt {name}", f"{key} is not declared well", "Give a description and either required or a default"
            )


def _clean(value: str) -> str:
    """A value on one line, cut: it is put into an instruction."""
    return " ".join(visible(value).split())[:MAX_VALUE]
