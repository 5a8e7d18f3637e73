"""What a recording would hold had nobody hooked into the engine: for measuring how well inference does without."""

from dataclasses import replace

from teller_core.data.records import Recording


def hide_decisions(recording: Recording) -> Recording:
    """``recording`` without the scheduler's decisions and the workers' executions: logs, callers and traces remain."""
    return replace(recording, decisions=[], executions=[])
