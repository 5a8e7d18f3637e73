"""Names of machines and paths go; all else of a capture stays."""

import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.capture import Pauses, Rank
from teller_core.data.records import FileRead
from teller_core.data.steps import Lines
from teller_core.data.texts import Texts
from teller_core.lab.benchmark.clean import cleaned, told_by
from tests.core.store.made import capture_of, differences, filled, tree_of


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/opt/env/lib/python3.11/site-packages/vllm/engine/core.py(12): step", "vllm/engine/core.py(12): step"),
        ("model='/mnt/models/tiny', dtype", "model='tiny', dtype"),
        ('File "/usr/lib/python3.11/threading.py", line 3', 'File "threading.py", line 3'),
        ("file:///var/vllm_dist_1 backend", "file://vllm_dist_1 backend"),
        ("POST /v1/chat/completions HTTP/1.1", "POST /v1/chat/completions HTTP/1.1"),
        ("Route: /metrics, Methods: GET", "Route: /metrics, Methods: GET"),
        ("3/4 of all, 7 tokens/s", "3/4 of all, 7 tokens/s"),
        ("box-7 is up, box-77 is not", "host-1 is up, box-77 is not"),
    ],
)
def test_a_text_keeps_what_is_not_the_machines(text: str, left: str) -> None:
    lines = filled(Lines, 1, untrusted_text=[text], fields=["{}"], process=["box-7/23"])
    whole = replace(capture_of("0a1b"), lines=lines, ranks=[Rank(0, "box-7", 23, "worker", None, 0)])
    found = cleaned(whole)
    assert found.lines.untrusted_text == [left]
    assert found.lines.process == ["host-1/23"]
    assert found.ranks[0].host == "host-1"
    assert told_by(found, []) == []
    assert "a host" in told_by(replace(whole, lines=replace(lines, untrusted_text=["box-7"])), [])


def test_what_holds_no_such_word_stays_bit_for_bit() -> None:
    whole = capture_of("0a1b", tree_of(300))
    assert not differences(cleaned(whole).ranks[0].tree, whole.ranks[0].tree)
    assert not differences(replace(cleaned(whole), ranks=[]), replace(whole, ranks=[]))


def test_machines_are_told_from_one_another_and_columns_of_packed_text_are_read() -> None:
    whole = replace(
        capture_of("0a1b"),
        files=[FileRead("blue/server.log", "engine_log", 3)],
        ranks=[Rank(0, "blue", 1, "worker", None, 0), Rank(1, "green", 1, "worker", None, 0)],
        pauses=filled(Pauses, 2, process=["green/1", "blue/1"]),
        lines=filled(Lines, 1, untrusted_text=["green waits for blue"], process=["blue/1"]),
    )
    whole = replace(whole, lines=replace(whole.lines, untrusted_text=Texts(["green waits for blue"])))
    found = cleaned(whole)
    assert [rank.host for rank in found.ranks] == ["host-1", "host-2"]
    assert found.pauses.process == ["host-2/1", "host-1/1"]
    assert list(found.lines.untrusted_text) == ["host-2 waits for host-1"]
    assert found.files[0].name == "host-1/server.log"


def test_words_are_found_wherever_they_stand() -> None:
    tree = tree_of(300)
    named = replace(tree, trace=replace(tree.trace, names=["aten::mm", "lab_inside", "x"]))
    whole = replace(capture_of("0a1b"), ranks=[Rank(0, "", 7, "worker", named, 0)])
    assert told_by(whole, ["lab_inside", "elsewhere"]) == ["lab_inside"]
    assert told_by(replace(whole, problems={"elsewhere": 1}), ["elsewhere"]) == ["elsewhere"]
    text = f"{Path.home()}/some/file on {socket.gethostname()}"
    told = replace(whole, lines=filled(Lines, 1, untrusted_text=[text]))
    assert told_by(told, []) == ["a host", "a path"]
    assert told_by(cleaned(told), []) == []
    assert np.array_equal(cleaned(told).lines.time, told.lines.time)
