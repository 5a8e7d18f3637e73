"""The rules of the house that no linter knows."""

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import teller_mcp.server
from teller_core.calls.serving import TOKEN_NAME
from teller_core.cli import VERSION, data_folder
from teller_core.errors import InputError
from teller_mcp.__main__ import _parser as server_parser
from teller_mcp.http import PATH

ROOT = Path(__file__).parent.parent
PACKAGES = ("teller_core", "teller_mcp")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
LONGEST_MODULE = 400
LONGEST_FUNCTION = 60
LOCAL = re.compile(r"(?<![\w.$}-])/(?:work|srv|tmp|root|home|Users)/\w")
"""A path of somebody's machine."""


def tracked() -> list[Path]:
    """Every text file of the project."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout to know the project's files")
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_modules_are_short() -> None:
    assert MODULES
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_functions_are_short() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{name}": length
        for path in MODULES
        for name, length in functions(path)
        if length > LONGEST_FUNCTION
    }
    assert long == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT)) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert silent == []


def test_no_tracked_text_names_a_path_of_somebodys_machine() -> None:
    found: list[str] = []
    for path in tracked():
        if path == Path(__file__):
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in LOCAL.finditer(text)]
    assert found == []


def test_nothing_is_left_for_later() -> None:
    marks = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
    assert [str(path.relative_to(ROOT)) for path in MODULES if marks.search(path.read_text("utf-8"))] == []


def test_the_names_others_use_are_there() -> None:
    from teller_core import cli
    from teller_mcp import __main__, tools

    assert callable(cli.main) and callable(__main__.main) and callable(teller_mcp.server.build_server)
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts == {"teller": "teller_core.cli:main", "teller-mcp": "teller_mcp.__main__:main"}
    assert [tool.name for tool in tools.TOOLS] == [
        "import_trace",
        "search",
        "list_slow_requests",
        "run_rca",
        "get_causal_slice",
        "explain_operator",
        "compare",
    ]
    assert len(tools.TOOLS) <= 10


@pytest.mark.parametrize(
    "page", ["README.md", "docs/asking.md", "docs/answers.md", "docs/counted.md", "docs/formats.md"]
)
def test_the_tables_for_readers_are_up_to_date(page: str) -> None:
    tables = load("readme_tables")
    assert page in tables.TABLES
    assert (ROOT / page).read_text("utf-8") == tables.written(page), "run python tests/readme_tables.py"


def test_what_the_table_of_commands_shows_without_brackets_is_all_that_a_verb_needs() -> None:
    from teller_core import cli
    from teller_core.calls import parser

    rows = re.findall(r"^\| `teller (.+?)` \|", (ROOT / "docs/asking.md").read_text("utf-8"), re.MULTILINE)
    assert len(rows) > 20
    for row in rows:
        needed = re.sub(r"\((.+?) or [^)]+\)", r"\1", re.sub(r" \[[^]]+\]", "", row))
        words = ["3" if word == "N" else word.removesuffix("...") for word in needed.split()]
        assert parser(cli.VERBS).parse_args(words).verb
        values = [at for at, word in enumerate(words) if re.fullmatch(r"[A-Z=]+|3", word)]
        for at in values:  # and nothing of it may be left out
            with pytest.raises(InputError):
                parser(cli.VERBS).parse_args([*words[: at - words[at - 1].startswith("-")], *words[at + 1 :]])


def test_every_page_of_the_docs_is_linked_and_its_tables_are_compared() -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
    made = {page for page in pages if re.search(r"^<!-- /\w+ -->$", (ROOT / page).read_text("utf-8"), re.MULTILINE)}
    assert made == set(load("readme_tables").TABLES) - {"README.md"}
    text = (ROOT / "README.md").read_text("utf-8")
    assert pages == set(re.findall(r"\((docs/[\w./-]+)\)", text))


def test_the_clients_in_the_readme_are_configured_with_arguments_that_exist() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    snippets = [json.loads(snippet) for snippet in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    servers = [(snippet.get("mcpServers") or snippet["servers"])["teller"] for snippet in snippets]
    commands = [[server["command"], *server["args"]] for server in servers if "command" in server]
    commands += [
        line.split(" -- ")[1].split() for line in text.splitlines() if line.startswith("claude mcp add teller")
    ]
    assert len(commands) == 3
    for command, *arguments in commands:
        assert command == "teller-mcp"
        assert server_parser().parse_args(arguments).root


def test_the_clients_in_the_readme_that_speak_http_call_the_server_where_it_listens_and_show_its_token() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    url = f"http://127.0.0.1:{server_parser().parse_args(['--http']).http}{PATH}"
    added = [line.split() for line in text.splitlines() if line.startswith("claude mcp add --transport http")]
    assert [words[6] for words in added] == re.findall(r'"url": "(.+?)"', text) == [url]
    token = data_folder({}).relative_to(Path.home()) / TOKEN_NAME
    assert f'--header "Authorization: Bearer $(cat ~/{token})"' in text
    assert '"headers": {"Authorization": "Bearer ${input:token}"}' in text


def test_the_registry_entry_says_what_the_project_says() -> None:
    entry = json.loads((ROOT / "server.json").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert entry["$schema"] == "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"]) and 3 <= len(entry["name"]) <= 200
    assert 1 <= len(entry["title"]) <= 100 and 1 <= len(entry["description"]) <= 100
    assert f"<!-- mcp-name: {entry['name']} -->" in (ROOT / "README.md").read_text("utf-8")
    over_stdio, over_http = entry["packages"]
    assert over_stdio["transport"] == {"type": "stdio"} and over_http["transport"]["type"] == "streamable-http"
    [header] = over_http["transport"]["headers"]
    assert header["name"] == "Authorization" and header["isRequired"] and header["isSecret"]
    port = next(argument["value"] for argument in over_http["packageArguments"] if argument["name"] == "--http")
    assert over_http["transport"]["url"] == f"http://127.0.0.1:{port}{PATH}"
    known = {option for action in server_parser()._actions for option in action.option_strings}
    for package in entry["packages"]:
        assert package["registryType"] == "pypi" and package["identifier"] == project["name"]
        assert entry["version"] == package["version"] == project["version"] == VERSION
        for argument in package["packageArguments"]:
            assert argument["type"] == "named" and argument["name"] in known
            assert argument["format"] in ("string", "number", "boolean", "filepath")
    allowed = {"$schema", "name", "title", "description", "version", "packages", "repository", "websiteUrl", "icons"}
    assert set(entry) <= allowed
