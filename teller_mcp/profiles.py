"""What may be recorded: profiles that the person who runs the server wrote into a TOML file. A model names one, and numbers.

    keep_in = "captures"                       # where recordings go; default: beside the database
    allow = ["10.0.0.7:8000"]                  # endpoints besides those of this machine

    [profiles.chat]
    about = "the chat model under its usual load"
    command = ["vllm", "serve", "model"]       # run as it is, without a shell
    environment = ["OMP_NUM_THREADS=1"]
    folder = "."                               # where it runs
    seconds = 120                              # the most that may be asked for, as the next two
    megabytes = 512
    window_s = 5
    consent = "given"                          # default: "ask" a person each time

Instead of ``command``: ``attach = "FOLDER"``, where ``teller capture`` records, or ``endpoint = "http://127.0.0.1:8000"`` with
``traces = "FOLDER"``, where that engine writes its profiles. Folders are relative to that of the file.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from teller_core.errors import InputError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", re.ASCII)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[^\0]*", re.ASCII)
ENDPOINT = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?|https?://\[[0-9a-fA-F:]+\](:\d{1,5})?", re.ASCII)
HOST_PORT = re.compile(r"[A-Za-z0-9.-]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}", re.ASCII)
MAX_BYTES = 1 << 20
KINDS = ("command", "attach", "endpoint")


def _like(pattern: re.Pattern[str], what: str) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(what)
        return text

    return AfterValidator(check)


def _plain(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError("it is empty or holds a zero byte")
    return text


Word = Annotated[str, AfterValidator(_plain)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Profile(_Strict):
    """One thing that may be recorded, and its bounds."""

    about: str = Field("", max_length=120)
    command: list[Word] | None = Field(None, min_length=1)
    attach: Word | None = None
    endpoint: Annotated[str, _like(ENDPOINT, "it is no http://HOST:PORT")] | None = None
    traces: Word | None = None
    environment: list[Annotated[str, _like(VARIABLE, "a line is no NAME=VALUE")]] = []
    folder: Word = "."
    seconds: float = Field(60, gt=0, le=3600)
    megabytes: int = Field(512, gt=0, le=100_000)
    window_s: float = Field(0, ge=0, le=60)
    consent: Literal["ask", "given"] = "ask"

    @property
    def kind(self) -> Literal["command", "attach", "endpoint"]:
        """Which of the three it is."""
        return "command" if self.command else "attach" if self.attach else "endpoint"

    @model_validator(mode="after")
    def _one_kind(self) -> "Profile":
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise ValueError("it needs exactly one of command, attach and endpoint")
        if (self.traces is not None) != (self.endpoint is not None):
            raise ValueError("traces belongs to an endpoint, which needs it")
        if self.command is None and self.environment:
            raise ValueError("environment belongs to a command")
        return self


class Profiles(_Strict):
    """The file."""

    keep_in: Word | None = None
    allow: list[Annotated[str, _like(HOST_PORT, "it is no HOST:PORT")]] = []
    profiles: dict[Annotated[str, _like(NAME, "a name has letters, digits, ._- and at most 40 of them")], Profile]
    """By name."""


def load_profiles(path: Path) -> Profiles:
    """The profiles in the TOML file ``path``. Raises InputError, with the place and what is wrong there."""
    what = f"The profiles {path.name}"
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(what, "the file is over 1 MB", "Name the file with the profiles")
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(what, f"they cannot be read ({error.strerror})", "Name an existing TOML file") from None
    except UnicodeDecodeError:
        raise InputError(what, "the file is no UTF-8 text", "Name a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(what, f"it is no TOML: {error}", "Correct it") from None
    try:
        found = Profiles.model_validate(content)
    except ValidationError as error:
        raise InputError(what, _wrong(error), "Correct it; teller-mcp reads it at its start") from None
    if not found.profiles:
        raise InputError(what, "it has no profile", "Write one, as [profiles.NAME]")
    return found


def _wrong(error: ValidationError) -> str:
    """The first thing that is wrong: its place, what, and the setting that was perhaps meant."""
    first = error.errors(include_url=False, include_input=False)[0]
    location = [str(part) for part in first["loc"] if part != "[key]"]
    place = ".".join(location) or "the file"
    if first["type"] == "extra_forbidden":
        known = Profile.model_fields if len(location) > 1 else Profiles.model_fields
        return f"{place} is no setting{_hint(location[-1], known)}"
    if first["type"] == "missing":
        return f"{place} is missing"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}"


def _hint(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, list(known), 1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"


def variables_of(profile: Profile) -> dict[str, str]:
    """The environment lines of ``profile`` by name."""
    return dict(cast("tuple[str, str]", tuple(line.split("=", 1))) for line in profile.environment)
