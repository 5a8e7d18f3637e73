"""What the names of profiles tell of who made them."""

from pathlib import Path

import pytest

from teller_core.data.trace import Origin
from teller_core.ingest.files.file_names import named

BARE = Origin("kineto", "unix")


@pytest.mark.parametrize(
    ("name", "rank", "host", "pid"),
    [
        ("worker3_step_12.1694128201557.pt.trace.json.gz", 3, None, None),
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34, None, None),
        ("inference_rank_1.json.gz", 1, None, None),
        ("rank_0.json", 0, None, None),
        ("rank0_nccl_params.json", 0, None, None),
        ("1782799835.6885648-TP-0-DECODE.trace.json.gz", 0, None, None),
        ("1782799835.68-TP-3-DP-1-PP-0-EP-3.trace.json.gz", 3, None, None),
        ("1782799835.68-TP-3-PP-1-DECODE.trace.json.gz", None, None, None),
        ("dp0_pp0_tp1_dcp0_ep1_rank1.1773709742341309550.pt.trace.json.gz", 1, None, None),
        ("gpu-node-7.cluster_41233.1694128201557.pt.trace.json", None, "gpu-node-7.cluster", 41233),
        ("extend.json.gz", None, None, None),
        ("rank_not_found.json", None, None, None),
        ("frank3.json", None, None, None),
        ("rank-1234567.json", None, None, None),
    ],
)
def test_rank_host_and_pid_by_name(name: str, rank: int | None, host: str | None, pid: int | None) -> None:
    told = named(BARE, Path(name))
    assert (told.rank, told.host, told.pid) == (rank, host, pid)


def test_what_the_file_itself_says_comes_first() -> None:
    said = Origin("kineto", "unix", rank=7, host="a", pid=1)
    assert named(said, Path("rank_3.json")) == said
    assert named(said, Path("b_5.1694128201557.pt.trace.json")) == said
