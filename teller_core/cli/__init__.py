"""``teller``: the verbs of the pipeline on a command line.

Exit codes: 0 answered, 1 a fault of TELLER, 2 the input or the call, 130 interrupted; ``capture`` ends as the command that
it recorded. Everything that is slow to load is loaded by the verb that needs it.
"""

from teller_core.calls import VERSION
from teller_core.cli.start import VERBS, main
from teller_core.cli.verbs import Verbs, data_folder, pipeline_verbs, store_path

__all__ = ["VERBS", "VERSION", "Verbs", "data_folder", "main", "pipeline_verbs", "store_path"]
