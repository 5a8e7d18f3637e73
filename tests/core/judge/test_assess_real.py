"""The assessment of services that were really recorded."""

from pathlib import Path

import numpy as np
import pytest

from teller_core.data.table import UNKNOWN
from teller_core.judge.assess import MOST, assess

CAPTURES = Path(__file__).parents[4] / "shared" / "captures"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vllm_shim", "vllm_faults/base", "vllm_faults/kv"])
def test_what_requests_met_predicts_what_they_took(name: str) -> None:
    if not (CAPTURES / name).exists():
        pytest.skip("../shared/captures is not there")
    from teller_core.ingest.reading import plan, read_group
    from teller_core.rebuild.capture import rebuild
    from teller_core.rebuild.nest import nest

    (group,) = plan([CAPTURES / name])
    recording = read_group(group, None)
    trees = [nest(trace) for _, trace in recording.traces]
    for at, tree in enumerate(trees):
        recording.traces[at] = (recording.traces[at][0], tree.trace)
    found = assess(rebuild(recording, trees, capture_id="0" * 16, name=name))
    for table in (found.baselines, found.steps, found.candidates, found.requests):
        table.check()
    requests = found.requests
    mine = np.array([metric == "e2e" for metric in requests.metric]) & (requests.by_load != UNKNOWN)
    mine &= requests.value != UNKNOWN
    assert mine.sum() >= 16
    ratio = requests.value[mine] / requests.by_load[mine]
    assert 0.8 < np.median(ratio) < 1.25
    counts = np.bincount(found.candidates.step, minlength=1)
    assert counts.max() <= MOST
    assert np.mean(found.steps.residual[~np.isnan(found.steps.residual)] >= 3) < 0.15
