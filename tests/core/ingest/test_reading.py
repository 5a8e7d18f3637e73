"""A group of files becomes one recording."""

import gzip
import os
import shutil
from pathlib import Path

import pytest

from teller_core.data.records import Process, Recording
from teller_core.errors import FormatError, InputError, TellerError
from teller_core.ingest.files.planning import Group
from teller_core.ingest.files.recognizing import recognized
from teller_core.ingest.reading import apart, content_id, plan, read_group
from teller_core.pipeline import import_paths
from teller_core.store.store import Store

DATA = Path(__file__).parents[2] / "data"
HOST = DATA / "host_records" / "vllm" / "input.jsonl"
LOG = DATA / "engine_log" / "vllm_json" / "input.jsonl"
CLIENT = DATA / "client_records" / "vllm_metrics" / "input.jsonl"


def read(*paths: Path) -> Recording:
    (group,) = plan(paths)
    return read_group(group)


def bundle(folder: Path) -> Path:
    (folder / "cap").mkdir(parents=True)
    shutil.copy(HOST, folder / "cap" / "host-10556.jsonl")
    shutil.copy(LOG, folder / "service.jsonl")
    shutil.copy(CLIENT, folder / "client.jsonl")
    return folder


def test_a_bundle_is_read_whole(tmp_path: Path) -> None:
    recording = read(bundle(tmp_path / "b"))
    assert recording.engine == "vllm"
    assert {file.name: file.format for file in recording.files} == {
        "cap/host-10556.jsonl": "host_records",
        "client.jsonl": "client_records",
        "service.jsonl": "engine_log",
    }
    assert len(recording.decisions) == 2
    assert len(recording.clients) == 2
    assert len(recording.iterations) == 1


def test_every_record_of_a_process_gets_the_role_that_any_file_tells(tmp_path: Path) -> None:
    recording = read(bundle(tmp_path / "b"))
    engine = Process("", 10556, "engine")
    assert {decision.process for decision in recording.decisions} == {engine}
    assert {pause.process for pause in recording.pauses if pause.process.pid == 10556} == {engine}
    assert {line.process.role for line in recording.lines if line.process.pid == 10491} == {"frontend"}


def test_facts_point_at_their_line_wherever_its_file_stands(tmp_path: Path) -> None:
    shutil.copy(DATA / "engine_log/vllm_v1/input.log", tmp_path / "a.log")
    shutil.copy(LOG, tmp_path / "b.log")
    recording = read(tmp_path)
    assert len(recording.iterations) == 2
    for iteration in recording.iterations:
        assert iteration.line is not None
        line = recording.lines[iteration.line]
        assert line.rule == "vllm.iteration"
        assert line.time == iteration.time
        assert recording.files[line.file].name == ("a.log" if iteration.engine == 1 else "b.log")


def test_a_step_that_two_logs_tell_is_told_once_by_the_finer_clock(tmp_path: Path) -> None:
    shutil.copy(LOG, tmp_path / "service.jsonl")
    same = "Engine 000: Iteration(0): 1 context requests, 16 context tokens, 0 generation requests, 0 generation tokens"
    text = f"{same}, iteration elapsed time: 68.38 ms, CPU KV cache usage: 0.0%"
    (tmp_path / "server.log").write_text(f"(APIServer pid=10491) INFO 11-29 14:19:42 [loggers.py:199] {text}\n")
    recording = read(tmp_path)
    assert [iteration.resolution for iteration in recording.iterations] == [1000]


def test_stamps_without_a_year_take_it_from_the_other_files(tmp_path: Path) -> None:
    shutil.copy(HOST, tmp_path / "host-10556.jsonl")
    log = tmp_path / "server.log"
    log.write_text("INFO 11-29 14:19:42 [a.py:1] Added request r-1.\n")
    os.utime(log, (0, 0))
    assert read(tmp_path).requests[-1].time == 1_795_961_982_000_000_000


def test_stamps_without_a_year_take_it_from_another_log_where_there_are_logs_alone(tmp_path: Path) -> None:
    for name in ("a.log", "c.log"):
        (tmp_path / name).write_text("INFO 11-29 14:19:42 [a.py:1] Added request r-1.\n")
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / "b.log").write_text('{"time": "2026-11-29T14:19:41Z", "level": "INFO", "message": "ready"}\n' * 3)
    recording = read(tmp_path)
    assert {fact.time for fact in recording.requests} == {1_795_961_982_000_000_000}
    assert {file.clock for file in recording.files} == {"unix", "wall"}


def test_the_same_content_is_the_same_capture_under_any_name(tmp_path: Path) -> None:
    first = content_id(plan([bundle(tmp_path / "b")])[0])
    shutil.copy(HOST, tmp_path / "z.jsonl")
    shutil.copy(LOG, tmp_path / "a.jsonl")
    shutil.copy(CLIENT, tmp_path / "m.txt")
    again = plan([tmp_path / "m.txt", tmp_path / "a.jsonl", tmp_path / "z.jsonl"])[0]
    assert content_id(again) == first
    assert content_id(plan([tmp_path / "z.jsonl"])[0]) != first


def test_a_broken_file_in_a_folder_is_a_problem_of_that_file(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "b")
    whole = gzip.compress(
        b'{"traceEvents": [' + b'{"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1},' * 999
    )
    (folder / "cap" / "torch-10556-1.json.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "notes.txt").write_text("nothing that anybody knows\n")
    (folder / "cap" / "half.gz").write_bytes(whole[:10])
    problems = {file.name: dict(file.problems) for file in read(folder).files if not file.events_kept}
    assert problems["notes.txt"] == {"unknown_file": 1}
    assert problems["cap/half.gz"] == {"broken_file": 1}
    assert problems["cap/torch-10556-1.json.gz"] == {"broken_file": 1}


def test_a_folder_without_anything_known_is_left_out_of_a_tree_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "read.me").write_text("nothing that anybody knows\n")
    (tmp_path / "run").mkdir()
    shutil.copy(LOG, tmp_path / "run" / "service.jsonl")
    (group,) = plan([tmp_path])
    assert group.name == "run"
    files = {file.name: dict(file.problems) for file in read_group(group).files}
    assert files["read.me"] == {"unknown_file": 1}
    with pytest.raises(InputError, match="no file in it is of a known format"):
        plan([tmp_path / "notes"])


def test_files_told_apart_are_captures_of_their_own(tmp_path: Path) -> None:
    shutil.copy(LOG, tmp_path / "a.jsonl")
    shutil.copy(CLIENT, tmp_path / "b.jsonl")
    assert [len(read_group(group).files) for group in apart([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])] == [1, 1]


def test_a_broken_file_that_was_named_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fr-7-1.json"
    path.write_text('{"entries":[{"collective_seq_id":1,')
    with pytest.raises(FormatError, match=r"fr-7-1\.json: the JSON ends early"):
        read(path)


@pytest.mark.parametrize("content", [b"nothing known\n", b"\x00" * 4096, b'{"a": 1}', b"\x89PNG\r\n", b"{}"])
def test_a_file_of_no_known_format_that_was_named_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "what"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no known format"):
        read(path)


def test_a_sparse_file_of_ten_gigabytes_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "huge.log"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(InputError, match="10240 MiB of it were never written"):
        read(path)


def test_an_unreadable_file_is_refused_or_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may read everything")
    path = tmp_path / "secret.log"
    path.write_text("INFO 11-29 14:19:42 [a.py:1] x\n")
    path.chmod(0)
    with pytest.raises(TellerError, match="cannot be read"):
        read(path)


def test_a_file_that_goes_away_while_others_are_read_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(LOG, tmp_path / "a.jsonl")
    shutil.copy(CLIENT, tmp_path / "b.jsonl")
    (group,) = plan([tmp_path])
    known = recognized(group)
    monkeypatch.setattr("teller_core.ingest.reading.recognized", lambda _: known)
    (tmp_path / "b.jsonl").unlink()
    with pytest.raises(InputError, match=r"b\.jsonl: it went away while others were read"):
        read_group(group)


def test_prompts_are_kept_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("INFO 11-29 14:19:42 [a.py:1] Received request r-1: prompt: 'a mystery', params: x\n")
    group = Group("server.log", tmp_path, [path], given=frozenset([path]))
    assert "mystery" not in str(read_group(group))
    assert "mystery" in str(read_group(group, keep_prompts=True))
    assert read_group(group).redactions == 1


def test_reading_says_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("INFO 11-29 14:19:42 [a.py:1] Added request r-1.\n" * 40_001)
    said: list[tuple[str, int, int]] = []
    (group,) = plan([path])
    read_group(group, lambda name, done, size: said.append((name, done, size)))
    size = path.stat().st_size
    assert len(said) > 1 and said == sorted(said)
    assert said[-1] == ("server.log", size, size)


@pytest.mark.parametrize("digits", ["9" * 9, "9" * 30, "9" * 5000, "0" * 5000])
def test_numbers_of_any_length_in_a_log_are_no_fault(tmp_path: Path, digits: str) -> None:
    stamp = "INFO 11-29 14:24:53 [core.py:1] "
    iteration = "{0} context requests, {0} context tokens, {0} generation requests, {0} generation tokens, "
    lines = [
        f"{stamp}Engine {digits}: Iteration({digits}): {iteration.format(1)}iteration elapsed time: {digits}.5 ms",
        f"(EngineCore_DP{digits} pid=7) {stamp}Iteration(1): {iteration.format(digits)}iteration elapsed time: 1.5 ms",
        f"[2026-11-29 14:24:53 TP{digits}] Prefill batch. #new-seq: {digits}, #new-token: {digits}, #running-req: {digits}",
        f"{digits}-11-29 14:24:53,{digits} - engine - INFO - {stamp}Engine {digits}: Avg prompt throughput: {digits} tokens/s",
    ]
    path = tmp_path / "server.log"
    path.write_text("\n".join([f"{stamp}ready"] * 4 + lines) + "\n")
    with Store.open(tmp_path / "t.db") as store:
        (report,) = import_paths([path], store).captures
    assert report.log_lines == 8
