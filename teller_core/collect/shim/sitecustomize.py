"""Found by every Python whose PYTHONPATH holds this folder. Does nothing without TELLER_CAPTURE_DIR.

Python runs one ``sitecustomize``. This one starts the recorder, then runs the one it hides, if there is one, looked for
only after this folder in ``sys.path``: two hidden ones that looked everywhere would call each other for ever. Whatever
the hidden one raises is left to Python, which reports it as it would have without us.
"""

import os
import sys
from importlib.machinery import PathFinder


def _hidden():
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [os.path.abspath(folder or ".") for folder in sys.path]
    return PathFinder.find_spec("sitecustomize", folders[folders.index(here) + 1 :] if here in folders else [])


def _run(spec):
    from importlib.util import module_from_spec  # slow, and mostly there is nothing hidden

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("TELLER_CAPTURE_DIR"):
    from teller_shim_guard import guarded

    def _switch():
        from teller_shim_switches import switch_on  # guarded

        switch_on()

    def _start():
        from teller_shim_process import start  # guarded

        start(os.environ["TELLER_CAPTURE_DIR"])

    guarded("switches", _switch)
    guarded("start", _start)

_spec = _hidden()
if _spec is not None and _spec.loader is not None:
    _run(_spec)
