"""A stat logger for vLLM: one line a step and one a finished request, in ``stats-PID-NNNN.jsonl``.

vLLM finds it by its entry point once this folder is on PYTHONPATH, and calls it in the process of its API server. Nothing
of vLLM is changed. It does nothing without TELLER_CAPTURE_DIR. What it is handed vLLM calls unstable: fields are taken by
name, one that is not there is left out and named in the file. Tested on vLLM 0.32.

Loading a stat logger has one effect of vLLM's own: the server counts even where ``--disable-log-stats`` was given.
"""

import os
import time

from teller_stats_lines import Rows, head
from teller_stats_writer import Writer, guarded
from vllm.v1.metrics.loggers import StatLoggerBase

TESTED = ("0.32",)
_shared = {"pid": 0, "writer": None}


class TellerStats(StatLoggerBase):
    """One for each engine that the API server talks to; all of a process write one file."""

    def __init__(self, vllm_config, engine_index=0):
        self.engine = engine_index
        self.pid = os.getpid()
        self.rows = Rows()
        self.writer = guarded("open", _writer, vllm_config) if os.environ.get("TELLER_CAPTURE_DIR") else None

    def record(self, scheduler_stats=None, iteration_stats=None, *_, **named):
        """Keep what was counted. Called by vLLM once a step, in its event loop, with objects made for this step: nothing of it
        changes any more, so rows are made of it when they are written.
        """
        writer = self.writer
        if writer is None or self.pid != os.getpid():
            return
        began = writer.begin()
        writer.add(self._rows, time.time_ns(), scheduler_stats, iteration_stats, named.get("engine_idx", self.engine))
        if began:
            writer.spent(began)

    def log_engine_initialized(self):
        """Nothing to do: the engine is told of when the file is begun."""

    def log(self):
        """Nothing to do: the writer has a clock of its own."""

    def _rows(self, now, scheduler, iteration, engine):
        yield self.rows.step(scheduler, iteration, engine, now)
        yield from self.rows.finished(iteration, engine, now)
        if self.rows.missing:
            yield self.rows.absent(now)


def _writer(config):
    """The writer of this process, made once."""
    if _shared["pid"] != os.getpid():
        _shared["writer"] = Writer(os.environ, head(config, TESTED))
        _shared["pid"] = os.getpid()
    return _shared["writer"]
