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
        """Keep what was counted. Called by vLLM once a step, in its event loop."""
        if self.writer is None or self.pid != os.getpid():
            return
        began = time.thread_time_ns()
        guarded("record", self._keep, scheduler_stats, iteration_stats, named.get("engine_idx", self.engine))
        self.writer.spent(time.thread_time_ns() - began)

    def log_engine_initialized(self):
        """Nothing to do: the engine is told of when the file is begun."""

    def log(self):
        """Nothing to do: the writer has a clock of its own."""

    def _keep(self, scheduler, iteration, engine):
        now = time.time_ns()
        self.writer.add(self.rows.step(scheduler, iteration, engine, now))
        for finished in self.rows.finished(iteration, engine, now):
            self.writer.add(finished)
        if self.rows.missing:
            self.writer.add(self.rows.absent(now))


def _writer(config):
    """The writer of this process, made once."""
    if _shared["pid"] != os.getpid():
        _shared["writer"] = Writer(os.environ, head(config, TESTED))
        _shared["pid"] = os.getpid()
    return _shared["writer"]
