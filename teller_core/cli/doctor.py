"""The verb that says what can be recorded, how, and what became of a recording."""

import argparse
import os
from collections.abc import Callable, Mapping

from teller_core.cli.speech import show
from teller_core.cli.verbs import Verbs
from teller_core.errors import InputError


def _doctor(given: argparse.Namespace, verbs: Callable[[], Verbs]) -> int:
    if given.engine is not None:
        from teller_core.collect.doctor.recipes import RECORDS, recipe

        if given.recording is not None:
            raise InputError("The call", "a recipe is about an engine, not about a recording", "Leave one of both out")
        show(given, recipe(given.engine, given.tier, given.door, given.to or RECORDS, helm=given.helm))
    elif given.recording is not None:
        from teller_core.collect.doctor.after import examine_recording

        show(given, examine_recording(given.recording))
    else:
        from teller_core.collect.doctor.here import examine_here
        from teller_core.collect.doctor.recipes import RECORDS

        show(given, examine_here(given.python, given.to or RECORDS, os.environ))
    return 0


VERBS: Mapping[str, Callable[..., int]] = {"doctor": _doctor}
