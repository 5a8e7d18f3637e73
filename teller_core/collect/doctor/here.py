"""What can be recorded here, before anyone waits for it."""

from collections.abc import Mapping
from pathlib import Path

from teller_core.collect.doctor.devices import device_checks
from teller_core.collect.doctor.engines import engine_checks, switch_checks
from teller_core.collect.doctor.machine import machine_checks
from teller_core.collect.doctor.served import served
from teller_core.data.report_recording import DoctorReport


def examine_here(python: Path | None, folder: Path, environment: Mapping[str, str]) -> DoctorReport:
    """The checks of this machine for a program that runs in the interpreter ``python`` and records into ``folder``.

    ``environment`` is what the served program would get. Errors: InputError for an interpreter that does not answer.
    """
    here = served(python, environment)
    checks = [*engine_checks(here, environment), *device_checks(here, environment), *switch_checks(here, environment)]
    return DoctorReport(subject="here", name=str(here.python), checks=[*checks, *machine_checks(folder)])
