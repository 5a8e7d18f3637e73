"""The command line over a pipeline that answers from memory."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from teller_core import cli
from teller_core.cli import Verbs, store_path
from teller_core.data import report as reports
from teller_core.data.report_fleet import FleetReport
from teller_core.data.report_learned import LearnReport
from teller_core.data.report_operators import OperatorReport
from teller_core.data.report_search import SearchReport
from teller_core.data.report_tokens import TokensReport
from teller_core.data.report_what_if import WhatIfReport
from teller_core.errors import UnknownName
from teller_core.tell.progress import CLEAR, nobody

Make = Callable[..., Verbs]

COMMANDS: list[tuple[list[str], str, type[reports.Model]]] = [
    (["import", "a.json"], "capture", reports.ImportReport),
    (["captures"], "capture", reports.CapturesReport),
    (["search", "nccl"], "found", SearchReport),
    (["slow"], "table", reports.SlowReport),
    (["fleet"], "tail", FleetReport),
    (["why", "42"], "verdict", reports.WhyReport),
    (["slice", "step", "17"], "slice", reports.SliceReport),
    (["slice", "--raw", "step", "17"], "slice", TokensReport),
    (["explain-op", "aten::mm"], "operator", OperatorReport),
    (["learn", "3f2a", "last"], "learned", LearnReport),
    (["learn", "--list"], "learned", LearnReport),
    (["learn", "--forget", "monday"], "learned", LearnReport),
    (["compare", "12", "42"], "comparison", reports.CompareReport),
    (["what-if", "42", "step 17=10ms"], "supposed", WhatIfReport),
]


@pytest.fixture(autouse=True)
def _a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLER_DB", str(tmp_path / "t.db"))


@pytest.mark.parametrize(("words", "kind", "model"), COMMANDS)
def test_json_is_exactly_the_report(
    words: list[str], kind: str, model: type[reports.Model], verbs: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*words, "--json"], verbs) == 0
    out, err = capsys.readouterr()
    assert model.model_validate_json(out).model_dump_json() + "\n" == out
    assert err == ""


@pytest.mark.parametrize(("words", "kind", "model"), COMMANDS)
@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_pages_fit_the_terminal_and_hold_no_escape(
    words: list[str],
    kind: str,
    model: object,
    columns: str,
    *,
    verbs: Make,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert cli.main(words, verbs) == 0
    out, _ = capsys.readouterr()
    assert out.strip()
    width = max(int(columns), 80 if kind in ("table", "slice", "comparison") else 60)
    assert [line for line in out.splitlines() if len(line) > width] == []
    assert "\x1b" not in out and not any(line != line.rstrip() for line in out.splitlines())


def test_arguments_reach_the_pipeline(verbs: Make, samples: Any, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[Any, ...]] = []

    def note(name: str, answer: Any) -> Callable[..., Any]:
        def verb(*given: Any, **named: Any) -> Any:
            asked.append((name, *given[1:], named))
            return answer

        return verb

    made = verbs(
        search=note("search", samples.found()),
        slow=note("slow", samples.table()),
        fleet=note("fleet", samples.tail()),
        why=note("why", samples.verdict()),
        causal_slice=note("slice", samples.slice()),
        compare=note("compare", samples.comparison()),
        what_if=note("what if", samples.supposed()),
        learn=note("learn", samples.baseline()),
    )
    slow = "slow --metric ttft --limit 5 --cursor x --slo-ms 200 --capture 3f2a"
    for line in (
        "search all reduce --kind span --capture all --limit 5 --cursor x",
        slow,
        "fleet --since 6h --until 2026-12-01 --service vllm",
        "why 42 --metric tpot --against monday",
        "learn 3f2a last --as monday --healthy",
        "slice request 42 --budget 900 --rank 1 --nodes 30",
        "compare 12 42 --capture 3f",
        "what-if 42 steps=usual 0:7=1ms --metric ttft",
    ):
        assert cli.main(line.split(), lambda: made) == 0
    assert asked == [
        ("search", "all reduce", {"capture": "all", "kind": "span", "limit": 5, "cursor": "x"}),
        ("slow", {"capture": "3f2a", "metric": "ttft", "slo_ms": 200.0, "limit": 5, "cursor": "x", "view": "vertical"}),
        ("fleet", {"since": "6h", "until": "2026-12-01", "service": "vllm"}),
        ("why", "42", {"capture": None, "metric": "tpot", "slo_ms": None, "against": "monday"}),
        ("learn", ["3f2a", "last"], {"name": "monday", "healthy": True, "progress": nobody}),
        ("slice", "request 42", {"capture": None, "rank": 1, "budget": 900, "nodes": 30}),
        ("compare", "12", "42", {"capture": "3f"}),
        ("what if", "42", ["steps=usual", "0:7=1ms"], {"capture": None, "metric": "ttft"}),
    ]


@pytest.mark.parametrize(("flag", "together"), [("--together", True), ("--apart", False), (None, None)])
def test_files_are_joined_or_split_as_asked(
    flag: str | None, together: bool | None, verbs: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[object] = []

    def read(paths: list[Path], store: object, **named: Any) -> reports.ImportReport:
        asked.append((paths, named["together"], named["keep_prompts"], named["jobs"]))
        return reports.ImportReport(captures=[])

    words = ["import", "a.json", "b", "--keep-prompts", "--jobs", "3", *([flag] if flag else [])]
    assert cli.main(words, lambda: verbs(import_paths=read)) == 0
    assert asked == [([Path("a.json"), Path("b")], together, True, 3)]


def test_the_answer_of_an_import_comes_when_its_bar_is_gone(verbs: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("sys.stderr", screen)

    def read(*_: object, **named: Any) -> reports.ImportReport:
        named["progress"]("store", 0, 0)
        return reports.ImportReport(captures=[])

    assert cli.main(["import", "a.json"], lambda: verbs(import_paths=read)) == 0
    before, _, after = screen.getvalue().rpartition(CLEAR)
    assert before.endswith("store") and after.strip()


def test_a_refusal_is_one_line_and_exit_code_2(verbs: Make, capsys: pytest.CaptureFixture[str]) -> None:
    def why(*_: object, **__: object) -> None:
        raise UnknownName("request 99", "the capture has requests 0 to 39", "List them with `slow`")

    assert cli.main(["why", "99"], lambda: verbs(why=why)) == 2
    assert capsys.readouterr() == (
        "",
        "teller: request 99: the capture has requests 0 to 39. List them with `teller slow`.\n",
    )
    assert cli.main(["why", "99", "--json"], lambda: verbs(why=why)) == 2
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    message = "request 99: the capture has requests 0 to 39. List them with `teller slow`."
    assert json.loads(out) == {"error": {"kind": "unknown", "message": message, "next": "List them with `teller slow`"}}


@pytest.mark.parametrize(
    "words",
    [
        "",
        "wy 42",
        "why",
        "slow --metric p99",
        "slow --limit many",
        "slow --limit 0",
        "slow --limit 1.5",
        "slow --slo-ms fast",
        "slow --slo-ms -5",
        "slice 1 --budget 0",
        "import",
        "import a --together --apart",
    ],
)
def test_a_wrong_command_line_is_a_refusal_too(words: str, verbs: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words.split(), verbs) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("teller: ") and "--help." in err
    assert "teller: teller: " not in err and " _" not in err
    assert cli.main([*words.split(), "--json"], verbs) == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "input"


@pytest.mark.parametrize("words", [["import", ""], ["import", "a.json", ""], ["slow", "--db", ""]])
def test_an_unset_variable_of_the_shell_is_not_the_current_folder(
    words: list[str], verbs: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words, verbs) == 2
    assert "it is empty: is a variable of your shell not set?" in capsys.readouterr().err


def test_captures_of_a_store_that_may_not_be_written_are_listed(tmp_path: Path, verbs: Make) -> None:
    asked: list[bool] = []

    def recording() -> Verbs:
        loaded = verbs()
        opened = loaded.open_store
        return replace(
            loaded, open_store=lambda path, read_only, end: asked.append(read_only) or opened(path, read_only, end)
        )

    assert cli.main(["captures"], recording) == 0
    (tmp_path / "t.db").touch()
    assert cli.main(["captures"], recording) == 0
    assert asked == [False, True]


def test_an_interrupt_ends_with_130_and_one_line(verbs: Make, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for words in (["captures"], ["import", "a.json"]):
        assert cli.main(words, lambda: verbs(list_captures=stop, import_paths=stop)) == 130
        assert capsys.readouterr() == ("", "teller: interrupted. What is stored is whole; run it again.\n")


def test_options_may_stand_before_or_after_the_verb(
    verbs: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[Path] = []

    def open_store(path: Path, read_only: bool, deadline_s: float | None) -> Any:
        from contextlib import nullcontext

        opened.append(path)
        return nullcontext(path)

    made = verbs(open_store=open_store)
    for words in (
        ["--db", "x.db", "--json", "captures"],
        ["captures", "--db", "x.db", "--json"],
        ["captures", "--json"],
    ):
        assert cli.main(words, lambda: made) == 0
        assert json.loads(capsys.readouterr().out)
    assert opened == [Path("x.db"), Path("x.db"), tmp_path / "t.db"]


def test_the_default_database_is_in_the_users_data_folder_and_theirs_alone(tmp_path: Path) -> None:
    assert store_path(Path("a.db"), {"TELLER_DB": "b.db"}) == Path("a.db")
    assert store_path(None, {"TELLER_DB": "b.db"}) == Path("b.db")
    data = tmp_path / "data"
    assert store_path(None, {"XDG_DATA_HOME": str(data)}) == data / "teller" / "teller.db"
    assert (data / "teller").stat().st_mode & 0o777 == 0o700


PROGRAM = """
import sys
from teller_core import cli
def broken():
    raise ValueError("what the prompt said")
def printing():
    print("x" * 100_000)
    raise SystemExit(0)
sys.argv = ["teller", *sys.argv[2:]]
sys.exit(cli.main(verbs={"broken": broken, "printing": printing}[%r]))
"""


def run(which: str, *words: str, **named: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM % which, "--", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **named)


def test_a_fault_of_our_own_is_exit_code_1_with_how_to_report_it() -> None:
    done = run("broken", "captures")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "internal fault: ValueError" in done.stderr and "--debug" in done.stderr
    assert "prompt" not in done.stderr
    assert "Traceback" in run("broken", "captures", "--debug").stderr


def test_a_reader_that_leaves_is_no_error() -> None:
    code = PROGRAM % "printing"
    with subprocess.Popen(
        [sys.executable, "-c", code, "--", "captures"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.wait(100) == 0
        assert process.stderr.read() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_answer_that_finds_no_room_is_refused_in_one_line() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "teller_core.cli", "formats"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("teller: the answer: it cannot be written (") and done.stderr.count("\n") == 1
        unheard = subprocess.run([*command, "--no-such-option"], stderr=full, check=False)
    assert unheard.returncode == 2


@pytest.mark.skipif(sys.platform == "win32", reason="starts a process as POSIX does")
@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_process_without_one_of_its_streams_answers_and_keeps_the_database_whole(
    tmp_path: Path, missing: int
) -> None:
    log = tmp_path / "server.log"
    log.write_text("INFO 07-01 00:00:01 [async_llm.py:261] Added request chatcmpl-1.\n" * 3)
    program = "import os, sys; os.close(int(sys.argv[1])); os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
    words = ["-m", "teller_core.cli", "--db", str(tmp_path / "t.db")]
    for verb in (["import", str(log)], ["captures"]):
        done = subprocess.run(
            [sys.executable, "-c", program, str(missing), *words, *verb], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert ("server.log" in done.stdout) == (missing != 1)


def test_where_memory_runs_out_an_answer_is_refused(verbs: Make, capsys: pytest.CaptureFixture[str]) -> None:
    def hungry() -> Verbs:
        raise MemoryError

    assert cli.main(["captures"], hungry) == 2
    assert capsys.readouterr().err.startswith("teller: the command: memory ran out. ")


def test_help_and_version_load_nothing_heavy() -> None:
    code = (
        "import sys; from teller_core import cli\n"
        "try: cli.main([sys.argv[1]])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'pydantic', 'numba', 'sqlite3', 'sqlite_utils', 'mcp'} & set(sys.modules)))"
    )
    for word in ("--help", "--version"):
        done = subprocess.run([sys.executable, "-c", code, word], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_a_terminal_gets_colors_unless_they_are_declined() -> None:
    program = (
        "import sys; sys.path[:0] = []\n"
        "from teller_core.tell.layout import Style\n"
        "from teller_core.cli.speech import style\n"
        "print(style())"
    )
    for declined in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"}):
        ours, theirs = os.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "PYTHONIOENCODING": "ascii", **declined}
        environment = {key: value for key, value in environment.items() if key != "NO_COLOR" or "NO_COLOR" in declined}
        subprocess.run([sys.executable, "-c", program], stdout=theirs, env=environment, check=True)
        shown = os.read(ours, 1000).decode()
        os.close(ours)
        os.close(theirs)
        assert f"Style(width=120, color={not declined}, unicode=False)" in shown
