"""What a file of profiles may say, and how a mistake in it is told."""

from pathlib import Path

import pytest

from teller_core.errors import InputError
from teller_mcp.profiles import load_profiles, variables_of

GOOD = """
keep_in = "there"
allow = ["10.0.0.7:8000"]
[profiles.chat]
command = ["serve", "model with spaces", "$HOME"]
environment = ["A=b", "EMPTY=", "URL=http://x/?a=b"]
seconds = 12.5
[profiles.window]
attach = "running"
consent = "given"
[profiles.engine]
endpoint = "http://127.0.0.1:8000"
traces = "profiles"
"""
WRONG: list[tuple[str, str]] = [
    ("[profiles.a]\ncomand = ['x']", "profiles.a.comand is no setting; did you mean command?"),
    ("keep = 'x'\n[profiles.a]\ncommand = ['x']", "keep is no setting; did you mean keep_in?"),
    ("[profiles.a]\ncommand = ['x']\nzzz = 1", "profiles.a.zzz is no setting; there are about, command, attach"),
    ("[profiles.a]\ncommand = 'serve model'", "profiles.a.command: Input should be a valid list"),
    ("[profiles.a]\ncommand = []", "profiles.a.command: List should have at least 1 item"),
    ("[profiles.a]\ncommand = ['']", "profiles.a.command.0: it is empty"),
    ("[profiles.a]\ncommand = ['x']\nseconds = '60'", "profiles.a.seconds: Input should be a valid number"),
    ("[profiles.a]\ncommand = ['x']\nseconds = 0", "profiles.a.seconds: Input should be greater than 0"),
    ("[profiles.a]\ncommand = ['x']\nseconds = 1e9", "profiles.a.seconds: Input should be less than or equal to 3600"),
    ("[profiles.a]\ncommand = ['x']\nmegabytes = 1.5", "profiles.a.megabytes: Input should be a valid integer"),
    ("[profiles.a]\ncommand = ['x']\nconsent = 'yes'", "profiles.a.consent: Input should be 'ask' or 'given'"),
    ("[profiles.a]\ncommand = ['x']\nenvironment = ['A b']", "profiles.a.environment.0: a line is no NAME=VALUE"),
    ("[profiles.a]\ncommand = ['x']\nattach = 'y'", "profiles.a: it needs exactly one of command, attach and endpoint"),
    ("[profiles.a]\nabout = 'x'", "profiles.a: it needs exactly one of command, attach and endpoint"),
    ("[profiles.a]\nendpoint = 'http://x:1'", "profiles.a: traces belongs to an endpoint, which needs it"),
    ("[profiles.a]\nendpoint = 'file:///x'\ntraces = 'y'", "profiles.a.endpoint: it is no http://HOST:PORT"),
    ("[profiles.a]\nendpoint = 'http://a@b:1'\ntraces = 'y'", "profiles.a.endpoint: it is no http://HOST:PORT"),
    ("[profiles.a]\nattach = 'x'\nenvironment = ['A=b']", "profiles.a: environment belongs to a command"),
    ("[profiles.'a b']\ncommand = ['x']", "profiles.a b: a name has letters, digits, ._- and at most 40"),
    ("allow = ['*']\n[profiles.a]\ncommand = ['x']", "allow.0: it is no HOST:PORT"),
    ("keep_in = 'x'", "profiles is missing"),
    ("[profiles]", "it has no profile. Write one, as [profiles.NAME]."),
    ("[profiles.a", "it is no TOML: "),
    ("\xff", "the file is no UTF-8 text"),
]


def written(folder: Path, text: str) -> Path:
    path = folder / "p.toml"
    path.write_bytes(text.encode("latin-1"))
    return path


def test_a_file_of_profiles_is_read_as_it_is_written(tmp_path: Path) -> None:
    found = load_profiles(written(tmp_path, GOOD))
    assert (found.keep_in, found.allow) == ("there", ["10.0.0.7:8000"])
    chat, window, engine = found.profiles.values()
    assert chat.command == ["serve", "model with spaces", "$HOME"]
    assert variables_of(chat) == {"A": "b", "EMPTY": "", "URL": "http://x/?a=b"}
    assert (chat.kind, chat.seconds, chat.megabytes, chat.window_s, chat.consent) == ("command", 12.5, 512, 0, "ask")
    assert (window.kind, window.consent) == ("attach", "given")
    assert (engine.kind, engine.traces) == ("endpoint", "profiles")


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_a_mistake_is_refused_with_its_place_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        load_profiles(written(tmp_path, text))
    said = str(refused.value)
    assert said.startswith("The profiles p.toml: ") and words in said
    assert "\n" not in said


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.toml: they cannot be read \(No such file"):
        load_profiles(tmp_path / "none.toml")
