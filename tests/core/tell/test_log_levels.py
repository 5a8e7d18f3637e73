"""Status lines of a log as readings, through an import and the slow list."""

from pathlib import Path

from teller_core import answers
from teller_core.pipeline import import_paths
from teller_core.store.store import Store

HEAD = "(APIServer pid=7) INFO 08-01 21:24:{:02d} [loggers.py:273] "
STATUS = (
    "Engine {}: Avg prompt throughput: 6.8 tokens/s, Avg generation throughput: {} tokens/s, Running: {} reqs, "
    "Waiting: {} reqs, GPU KV cache usage: {}%, Prefix cache hit rate: 0.0%"
)


def test_a_log_without_requests_tells_how_the_service_stood(tmp_path: Path) -> None:
    told = [(0, "000", 10.5, 3, 0, 12.5), (10, "000", 20.5, 4, 5, 95.0), (10, "001", 1.5, 1, 2, 5.0)]
    log = tmp_path / "vllm.log"
    log.write_text("".join(f"{HEAD.format(second)}{STATUS.format(*rest)}\n" for second, *rest in told))
    with Store.open(tmp_path / "t.db") as store:
        import_paths([log], store)
        report = answers.slow(store)
    levels = {level.name: (level.lowest, level.highest, level.last) for level in report.levels}
    # Requests and tokens of several engines add up; of a share the fullest counts.
    assert levels["running"] == (3, 5, 5)
    assert levels["waiting"] == (0, 7, 7)
    assert levels["kv_usage"] == (0.125, 0.95, 0.95)
    assert levels["output_rate"] == (10.5, 22.0, 22.0)
    assert report.note.startswith("No requests: the log that was read tells of none by itself.")
    assert "Up to 7 requests waited at once." in report.note
    assert "The KV cache was 95 % full at most." in report.note
