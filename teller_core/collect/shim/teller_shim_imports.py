"""Run a function once a module has been imported, without importing it; which versions of it are known."""

import os
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

    ``tested`` is a tuple of ``major.minor``. The package must be imported already, or be about to be.
    """
    return _known(package, tested, aloud=True)


def known_library(package, tested):
    """The same for a package that many programs import which have nothing to record: those must not begin a file to say that
    its hooks are on. Each segment that begins afterwards says so.
    """
    return _known(package, tested, aloud=False)


def _known(package, tested, aloud):
    module = sys.modules.get(package)
    version = str(getattr(module, "__version__", "")) or guarded("version", _installed, package, module) or "unknown"
    known = ".".join(version.split(".")[:2]) in tested
    tell_hooks("hooks" if known else "hooks_disabled", package, version, list(tested), aloud or not known)
    return known


def _installed(package, module):
    """The version by the name of the folder that installers lay beside a package, ``NAME-VERSION.dist-info`` ("Recording
    installed projects" of packaging.python.org), for one that does not say it itself. ``importlib.metadata`` reads the
    same, after some 10 ms of imports.
    """
    folder = os.path.dirname(os.path.dirname(getattr(module, "__file__", None) or ""))
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        called, _, rest = name.partition("-")
        if called.lower() == package and rest[:1].isdigit() and rest.endswith((".dist-info", ".egg-info")):
            return rest.rpartition(".")[0].partition("-")[0]
    return ""


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
