"""How a check is written down."""

from teller_core.data.report_recording import DoctorCheck


def yes(part: str, found: str, next_step: str | None = None) -> DoctorCheck:
    """It will be, or was, recorded."""
    return DoctorCheck(part=part, state="yes", found=found, next=next_step)


def partly(part: str, found: str, next_step: str | None = None) -> DoctorCheck:
    """Some of it."""
    return DoctorCheck(part=part, state="partly", found=found, next=next_step)


def no(part: str, found: str, next_step: str | None = None) -> DoctorCheck:
    """None of it."""
    return DoctorCheck(part=part, state="no", found=found, next=next_step)


def note(part: str, found: str, next_step: str | None = None) -> DoctorCheck:
    """It bears on what is recorded."""
    return DoctorCheck(part=part, state="note", found=found, next=next_step)
