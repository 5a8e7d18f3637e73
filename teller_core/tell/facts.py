"""What a finding saves, and the facts that it stands on, each on one line: for every page that shows one."""

from teller_core.data.report_findings import EvidenceItem, Finding, Together
from teller_core.tell.layout import LONGEST_NAME, milliseconds, plain, singular

SCOPES = {"capture": "whole capture"}


def rescheduled(finding: Finding | Together) -> str:
    """The saving with new batches, empty where no saving is claimed anyway."""
    if finding.rescheduled_ms is None:
        why = finding.rescheduled_assumes
        return f"With batches made anew no saving is claimed: {why}" if why and finding.saving_ms is not None else ""
    low, high = milliseconds(finding.rescheduled_low_ms), milliseconds(finding.rescheduled_high_ms)
    return f"With batches made anew {milliseconds(finding.rescheduled_ms)} sooner ({low} to {high})."


def saving(finding: Finding | Together) -> str:
    """What the end of it would save, or why that is not claimed."""
    if finding.saving_ms is None:
        return f"No saving is claimed: {finding.saving_assumes}"
    low, high = milliseconds(finding.saving_low_ms), milliseconds(finding.saving_high_ms)
    between = f" ({low} to {high})" if low != high else ""
    return f"It would have ended {milliseconds(finding.saving_ms)} sooner{between}: {finding.saving_assumes}"


def amount(value: float, unit: str | None) -> str:
    """So much of a unit: of one thing, or of several."""
    shown = f"{value:,.6g}"
    if not unit:
        return shown
    return f"{shown} {singular(unit) if shown == '1' else unit}"


def evidence(item: EvidenceItem) -> str:
    """One fact on one line."""
    parts = [
        plain(item.name, LONGEST_NAME) if item.name else item.kind.replace("_", " "),
        f"step {item.step}" if item.step is not None and item.kind != "step" else "",
        amount(item.value, item.unit) if item.value is not None else "",
        f"normally {amount(item.normal, item.unit)}" if item.normal is not None else "",
        f"span {item.span}" if item.span else "",
        f"at {plain(item.log_line, 120)}" if item.log_line else "",
        f'"{plain(item.untrusted_text)}"' if item.untrusted_text else "",
        f"({SCOPES.get(item.scope, item.scope.replace('_', ' '))})",
    ]
    return ", ".join(filter(None, parts)).replace(", (", " (")
