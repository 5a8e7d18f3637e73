"""First on the PYTHONPATH of the lab's service: makes it one to which something may be done. Then the next one runs.

What is done is installed before the recorder, so the recorder sees it as the service's own doing.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_folder = os.environ.get("TELLER_LAB_FOLDER")  # noqa: TID251  # its only way into another program, whose children must find it too
if _folder is not None:
    import teller_lab_points

    teller_lab_points.install(_folder)

_here = os.path.dirname(os.path.abspath(__file__))
_folders = [os.path.abspath(folder or ".") for folder in sys.path]
_spec = PathFinder.find_spec("sitecustomize", _folders[_folders.index(_here) + 1 :])
if _spec is not None and _spec.loader is not None:
    _module = module_from_spec(_spec)
    sys.modules["sitecustomize"] = _module
    _spec.loader.exec_module(_module)
