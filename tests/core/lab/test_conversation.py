"""What the person of the demo asks about."""

import pytest

from teller_core.data.report import SlowReport
from teller_core.errors import TellerError
from teller_core.lab.conversation import _choose
from teller_core.store.questions import SlowRow
from teller_core.tell.slow import slow_report

ONE = SlowRow(
    request=1, engine_id="", e2e=9, ttft=1, tpot=1, itl_max=1, queue=1, value=9, over_work=3.0, over_load=3.0,
    verdict="cause", cause="lifecycle.cold_start", began=0,
)  # fmt: skip


def table(*named: tuple[str, str]) -> SlowReport:
    rows = [ONE._replace(request=at, engine_id=name, verdict=verdict) for at, (name, verdict) in enumerate(named, 1)]
    return slow_report("3f2a", "e2e", rows, total=len(rows), next_cursor=None, slo_ms=None, note="")


def test_nobody_asks_about_what_the_service_was_warmed_up_with() -> None:
    given = (("warmup-000", "cause"), ("warmup-001", "cause"), ("req-001", "typical_here"), ("req-002", "cause"))
    assert _choose(table(*given)) == (4, 3)
    assert _choose(table(*given[:3])) == (3, 3)


def test_a_recording_of_nothing_else_is_refused() -> None:
    with pytest.raises(TellerError, match="holds no request"):
        _choose(table(("warmup-000", "cause")))
