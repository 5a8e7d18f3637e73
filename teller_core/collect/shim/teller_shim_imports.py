"""Run a function once a module has been imported, without importing it."""

import sys
import threading
from importlib.machinery import SourceFileLoader, SourcelessFileLoader

from teller_shim_events import tell_hooks
from teller_shim_guard import guarded

_hooks = {}
_searching = threading.local()


def when_imported(module, hook):
    """Call ``hook(module)`` right after the module named ``module`` has run, or now where it already has."""
    if module in sys.modules:
        guarded(module, hook, sys.modules[module])
    else:
        _hooks.setdefault(module, []).append(hook)


def watch():
    """Start watching imports."""
    sys.meta_path.insert(0, _Finder())


def known_version(package, tested):
    """Whether the installed ``package`` has a version that its hooks were tested on; the bundle is told if not.

    ``tested`` is a tuple of ``major.minor``. The package must be imported already.
    """
    version = str(getattr(sys.modules.get(package), "__version__", "unknown"))
    if ".".join(version.split(".")[:2]) in tested:
        tell_hooks("hooks", package, version, list(tested))
        return True
    tell_hooks("hooks_disabled", package, version, list(tested))
    return False


class _Finder:
    """Asks the other finders and, for a module with hooks, makes its loader run them after the module."""

    def find_spec(self, name, path=None, target=None):
        if name not in _hooks or getattr(_searching, "name", None) == name:
            return None
        _searching.name = name
        try:
            return self._found(name, path, target)
        finally:
            _searching.name = None

    def _found(self, name, path, target):
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self and hasattr(finder, "find_spec") else None
            if spec is not None:
                guarded(name, _extend, spec)
                return spec
        return None


def _extend(spec):
    loader = spec.loader
    if type(loader) not in (SourceFileLoader, SourcelessFileLoader):  # another loader may serve many modules at once
        tell_hooks("hooks_disabled", spec.name, "loader", ["SourceFileLoader"])
        return
    run = loader.exec_module

    def exec_module(module):
        del loader.exec_module
        run(module)
        for hook in _hooks.pop(spec.name, ()):
            guarded(spec.name, hook, module)

    loader.exec_module = exec_module
