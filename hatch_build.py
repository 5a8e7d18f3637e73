"""Build the injection library into the wheel where a C compiler is; without one, the first capture builds it."""

import sysconfig
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface  # pyright: ignore[reportMissingImports]  # the builder has it

NATIVE = Path(__file__).parent / "teller_core" / "collect" / "native"


class InjectionLibrary(BuildHookInterface[Any]):
    """Adds ``libteller_inject-HASH.so`` to the wheel of the machine that builds it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it; an editable install and a machine without a compiler get none."""
        spec = spec_from_file_location("teller_native_build", NATIVE / "build.py")
        if version == "editable" or spec is None or spec.loader is None:
            return
        builder = module_from_spec(spec)
        spec.loader.exec_module(builder)
        library = builder.build(Path(self.directory) / "native")
        if library.path is None:
            self.app.display_warning(f"The wheel is without the injection library: {library.reason}")
            return
        build_data["force_include"][str(library.path)] = f"teller_core/collect/native/{library.path.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
