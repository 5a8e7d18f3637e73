"""Labels of episodes: who was struck, who surely was not, and of whom nothing is said."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from teller_core.data.capture import Capture, Rank
from teller_core.data.steps import Participation, Requests, Role, Steps, StepWork, TokenTimes
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.data.tree import ROOT, Tree
from teller_core.lab.benchmark.chosen import effect, everything, healthy, of_strike, struck
from teller_core.lab.benchmark.cut import cut
from teller_core.lab.benchmark.labels import HARD_NEGATIVE, HEALTHY, NOT_JUDGED, STRUCK, Labels, labels_of
from teller_core.lab.benchmark.twins import lost
from teller_core.lab.blocks import BlockTruth
from tests.core.lab.benchmark.told import BEGIN, SECOND, block, calm, strike, window
from tests.core.store.made import capture_of, filled

MS = 1_000_000


def served(
    windows: Mapping[str, tuple[int, int, int]], steps: Sequence[tuple[int, int, int]] = (), **more: Any
) -> Capture:
    """A capture of requests ``name: (window, begin ms, end ms)`` and steps ``(window, scheduled ms, delivered ms)``."""

    def at(number: int, ms: int) -> int:
        return BEGIN + 3 * number * SECOND + ms * MS

    unknown = dict.fromkeys(
        ("received", "queued", "scheduled", "first_token", "last_token", "finished", "client_first")
    )
    count = len(windows)
    return replace(
        capture_of("0a1b2c3d"),
        steps=filled(
            Steps,
            len(steps),
            scheduled=[at(number, low) for number, low, _ in steps],
            delivered=[at(number, high) for number, _, high in steps],
            launched=[UNKNOWN] * len(steps),
            finished=[UNKNOWN] * len(steps),
            elapsed=[UNKNOWN] * len(steps),
        ),
        work=filled(StepWork, 0),
        requests=filled(
            Requests,
            count,
            number=range(1, count + 1),
            client_id=list(windows),
            engine_id=[f"cmpl-{name}-0" for name in windows],
            client_start=[at(number, low) for number, low, _ in windows.values()],
            client_end=[at(number, high) for number, _, high in windows.values()],
            **{name: [UNKNOWN] * count for name in unknown},
        ),
        participation=filled(Participation, 0),
        tokens=TokenTimes(np.zeros(count + 1, dtype=np.int64), np.empty(0, dtype=np.int64)),
        **more,
    )


def labelled(whole: Capture, truth: BlockTruth, number: int = 0) -> Labels:
    chosen = of_strike(truth, number, profiled=True)
    return labels_of(cut(whole, [one.interval for one in chosen]), chosen, lost(whole, chosen))


TWO = {"a": (0, 100, 900), "b": (1, 100, 900), "c": (1, 1000, 1900)}


def test_a_request_is_struck_where_it_lost_a_twentieth_of_its_time() -> None:
    truth = block([strike()], [calm(0, ["a"]), window(1, 0, ["b", "c"], [(200, 300), (1000, 1030)])])
    found = labelled(served(TWO), truth)
    assert found.request.tolist() == [HEALTHY, STRUCK, NOT_JUDGED]
    assert found.cause == ["", "host.blocking_call", ""]
    assert found.request_window.tolist() == [0, 1, 1]


UNTOLD = strike("prefix_cache_miss", "scheduler.prefix_cache_miss", where="load", role="client")


def test_where_no_delays_are_told_who_took_longer_than_its_twins_is_struck() -> None:
    windows = {"a": (0, 100, 600), "b": (0, 600, 1400), "d": (1, 100, 600), "e": (1, 700, 1500)}
    taken = {"f": (2, 100, 650), "g": (2, 700, 1510)}
    truth = block([UNTOLD], [calm(0, ["a", "b"]), calm(1, ["d", "e"]), window(2, 0, ["f", "g"])])
    found = labelled(served({**windows, **taken}), truth)
    assert found.request.tolist() == [HEALTHY] * 4 + [STRUCK, NOT_JUDGED]


def test_what_is_judged_by_the_first_token_is_lost_before_it() -> None:
    truth = block([replace(UNTOLD, judged_by="ttft")], [calm(0, ["a"]), window(1, 0, ["b"])])
    whole = served({"a": (0, 100, 900), "b": (1, 100, 700)})
    first = whole.requests.client_start + np.array([50, 110]) * MS
    for sooner, label in ((0, STRUCK), (40 * MS, NOT_JUDGED)):
        told = replace(whole.requests, client_first=first - np.array([0, sooner]))
        assert labelled(replace(whole, requests=told), truth).request.tolist() == [HEALTHY, label]


def test_without_delays_and_without_twins_every_ordinary_request_of_the_window_is_struck() -> None:
    truth = block([UNTOLD], [calm(0, []), window(1, 0, ["b"], others=["c"])])
    assert labelled(served(TWO), truth).request.tolist() == [HEALTHY, STRUCK, NOT_JUDGED]


@pytest.mark.parametrize("role", ["engine", "front_end"])
def test_waits_of_the_thread_that_computes_say_nothing_of_a_quota_on_another_process(role: str) -> None:
    quota = strike("engine_quota", "host.cpu_starvation", where="outside", role=role)
    truth = block([quota], [calm(0, []), window(1, 0, ["b", "c"], [(200, 201)])])
    found = labelled(served(TWO, [(1, 150, 250)]), truth)
    assert found.request.tolist() == [HEALTHY, STRUCK, STRUCK]
    assert found.step.tolist() == [NOT_JUDGED]


def test_a_strike_that_moved_nothing_labels_nobody() -> None:
    truth = block([strike(rejected="too small")], [calm(0, ["a"]), window(1, 0, ["b", "c"], [(200, 800)])])
    found = labelled(served(TWO, [(0, 100, 200), (1, 200, 300)]), truth)
    assert found.request.tolist() == [HEALTHY, NOT_JUDGED, NOT_JUDGED]
    assert found.step.tolist() == [HEALTHY, NOT_JUDGED]


def test_a_hard_negative_is_slow_and_no_fault() -> None:
    truth = block(
        [strike("longer_answers", None, where="load", role="client")], [calm(0, ["a"]), window(1, 0, ["b", "c"])]
    )
    found = labelled(served(TWO, [(1, 200, 300)]), truth)
    assert found.request.tolist() == [HEALTHY, HARD_NEGATIVE, HARD_NEGATIVE]
    assert found.cause == ["", "", ""]
    assert found.step.tolist() == [HEALTHY]


def test_a_step_is_struck_where_a_delay_lies_in_it() -> None:
    truth = block([strike()], [calm(0, ["a"]), window(1, 0, ["b", "c"], [(200, 300), (500, 501)])])
    steps = [(0, 200, 300), (1, 100, 200), (1, 210, 260), (1, 290, 400), (1, 300, 450), (1, 450, 600)]
    found = labelled(served(TWO, steps), truth)
    assert found.step.tolist() == [HEALTHY, NOT_JUDGED, STRUCK, STRUCK, NOT_JUDGED, STRUCK]
    assert found.step_window.tolist() == [0, 1, 1, 1, 1, 1]


def test_what_holds_back_a_decision_is_in_the_step_that_is_decided_on() -> None:
    slow = strike("slow_scheduler", "host.step_overhead", role="engine")
    truth = block([slow], [window(1, 0, ["b"], [(210, 240), (500, 540)])])
    found = labelled(served(TWO, [(1, 100, 200), (1, 241, 300), (1, 310, 400), (1, 541, 600)]), truth)
    assert found.step.tolist() == [NOT_JUDGED, STRUCK, NOT_JUDGED, STRUCK]


def test_what_is_done_to_the_front_end_is_in_no_step() -> None:
    slow = strike("slow_tokenizer", "frontend.input_processing", role="front_end")
    truth = block([slow], [window(1, 0, ["b"], [(200, 300)])])
    found = labelled(served(TWO, [(1, 100, 400)]), truth)
    assert (found.request[0], found.step.tolist()) == (STRUCK, [NOT_JUDGED])


def test_a_line_alone_says_when_its_step_ended_and_how_long_it_took() -> None:
    truth = block([strike()], [window(1, 0, ["b"], [(200, 210)])])
    whole = served(TWO, [(1, 300, 300), (1, 300, 300)])
    steps = replace(whole.steps, scheduled=np.full(2, UNKNOWN), elapsed=np.array([50 * MS, 95 * MS]))
    assert labelled(replace(whole, steps=steps), truth).step.tolist() == [NOT_JUDGED, STRUCK]


def test_steps_that_compute_long_prompts_of_others_are_struck() -> None:
    long = strike("long_prefill", "scheduler.prefill_interference", where="load", role="client")
    truth = block([long], [window(1, 0, ["b"], others=["c"])])
    whole = served(TWO, [(1, 1000, 1100), (1, 1100, 1200), (1, 1200, 1300)])
    taking = filled(Participation, 3, step=[0, 1, 2], request=[2, 1, 2], role=[Role.PREFILL, Role.PREFILL, Role.DECODE])
    found = labelled(replace(whole, participation=taking), truth)
    assert found.step.tolist() == [STRUCK, NOT_JUDGED, NOT_JUDGED]
    assert found.request.tolist() == [STRUCK, NOT_JUDGED]


@pytest.mark.parametrize(("knob", "label"), [("delay_ms", STRUCK), ("rate_mbit", STRUCK), ("loss_percent", NOT_JUDGED)])
def test_a_link_that_holds_back_every_packet_strikes_every_step_of_its_window(knob: str, label: int) -> None:
    slow = replace(strike("slow_link", "comm.degraded_link", where="link", role="link"), knobs={knob: 3.0})
    truth = block([slow], [calm(0, ["a"]), window(1, 0, ["b"])])
    found = labelled(served(TWO, [(0, 200, 300), (1, 100, 200), (1, 1000, 1100)]), truth)
    assert found.step.tolist() == [HEALTHY, label, label]


def test_requests_without_names_are_told_by_their_time_where_only_ordinary_ones_were_sent() -> None:
    whole = served(TWO)
    nameless = replace(whole.requests, client_id=["", "", ""], engine_id=["1", "2", "3"])
    truth = block([strike()], [calm(0, ["a"]), window(1, 0, ["b", "c"], [(100, 1900)])])
    assert labelled(replace(whole, requests=nameless), truth).request.tolist() == [HEALTHY, STRUCK, STRUCK]
    truth = block([strike()], [calm(0, ["a"]), window(1, 0, ["b"], [(100, 1900)], others=["c"])])
    assert labelled(replace(whole, requests=nameless), truth).request.tolist() == [HEALTHY, NOT_JUDGED, NOT_JUDGED]


def test_operators_that_were_computed_again_are_named_the_longest_first() -> None:
    begin = BEGIN + 3 * SECOND
    spans = [
        (200, 100, "step", Layer.ENGINE),
        (210, 30, "aten::mm", Layer.OPERATOR),
        (240, 9, "aten::silu", Layer.OPERATOR),
    ]
    spans += [(260, 30, "aten::add", Layer.OPERATOR)]
    whole = served(TWO, [(1, 190, 310)], ranks=[Rank(0, "host-1", 7, "worker", tree(spans, begin), -1)])
    whole = replace(whole, work=filled(StepWork, 1, row=[0], row_stop=[4]))
    slow = strike("slow_operator", "host.slow_operator")
    found = labelled(whole, block([slow], [window(1, 0, ["b"], [(205, 250)])]))
    assert found.operators == [("aten::mm", "aten::silu")]
    assert labelled(whole, block([strike()], [window(1, 0, ["b"], [(205, 250)])])).operators == [()]


def tree(spans: Sequence[tuple[int, int, str, Layer]], begin: int) -> Tree:
    """The first span holds the others."""
    count = len(spans)
    trace = Trace(
        start=np.array([begin + span[0] * MS for span in spans], dtype=np.int64),
        dur=np.array([span[1] * MS for span in spans], dtype=np.int64),
        name=np.arange(count, dtype=np.int32),
        lane=np.zeros(count, dtype=np.int32),
        category=np.zeros(count, dtype=np.uint8),
        layer=np.array([span[3] for span in spans], dtype=np.uint8),
        link=np.full(count, -1, dtype=np.int64),
        arg=np.full(count, -1, dtype=np.int32),
        names=[span[2] for span in spans],
        lanes=[Lane("7", "7", False)],
        categories=["cpu_op"],
        args=[],
        origin=Origin("kineto", "unix"),
    )
    parent = np.array([ROOT, *[0] * (count - 1)], dtype=np.int32)
    return Tree(trace, parent, np.array([count, *range(2, count + 1)], dtype=np.int32))


def test_windows_are_chosen_for_what_is_asked() -> None:
    strikes = [strike(), strike("gc_pause", "host.gc_pause")]
    truth = block(strikes, [window(0, 0, ["a"]), calm(1, ["b"]), window(2, 1, ["c"]), calm(3, ["d"])])
    names = [
        [one.window.requests[0] for one in chosen]
        for chosen in (of_strike(truth, 0, profiled=True), struck(truth, 1, profiled=True))
    ]
    assert names == [["a", "b", "d"], ["c"]]
    assert [one.window.requests[0] for one in healthy(truth, profiled=True)] == ["b", "d"]
    assert len(everything([truth, truth], profiled=False)) == 8


def test_the_effect_is_told_in_units_of_the_noise() -> None:
    assert effect(strike(ratio=np.e)) == pytest.approx(10.0)
    assert np.isnan(effect(replace(strike(), sigma=0.0)))
    assert np.isnan(effect(replace(strike(), moved={})))
