"""One service on two machines, as two network namespaces with a link between them: each is recorded as a machine of its own.

While it runs, the bundles lie side by side in a hidden folder, the first one's with what clients measured; afterwards they
are merged into the one that was asked for.
"""

import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from teller_core.collect.about import NAME
from teller_core.collect.bundle import Service, record
from teller_core.collect.merge import merge
from teller_core.errors import InputError
from teller_core.lab.link import ADDRESSES, DEVICE, Link

NODES = ("node-a", "node-b")
MASTER_PORT = 29600
"""Where the ranks find one another: in a namespace of its own, every port is free."""


def words(side: int) -> list[str]:
    """What makes ``vllm serve -tp 2`` the one of ``side``: a rank on each of two machines, the first one with the front end."""
    place = [f"--node-rank={side}", f"--master-addr={ADDRESSES[0]}", f"--master-port={MASTER_PORT}"]
    return ["--nnodes=2", *place, "--distributed-executor-backend=mp", *(["--headless"] if side else [])]


@contextmanager
def recorded(
    link: Link,
    commands: Sequence[Sequence[str]],
    bundle: Path,
    variables: Mapping[str, str],
    *,
    working_folder: Path,
    import_first: Sequence[Path] = (),
) -> Generator[Sequence[Service]]:
    """Run a command on each side of ``link``, each under its own recorder. Stopped on leaving, and merged into ``bundle``.

    Raises InputError where a folder is in use or a command cannot be run.
    """
    if bundle.exists():
        raise InputError("The folder to record into", "it is there already", "Name a new folder")
    parts = _parts(bundle)
    with ExitStack() as stack:
        stack.callback(_join, bundle)
        services = [
            stack.enter_context(
                record(
                    link.command(side, commands[side]),
                    parts[side],
                    {**variables, "VLLM_HOST_IP": ADDRESSES[side], "GLOO_SOCKET_IFNAME": DEVICE},
                    import_first,
                    working_folder,
                )
            )
            for side in (1, 0)  # the first one, which asks the other, is stopped first
        ]
        yield services[::-1]


def mend(folder: Path) -> None:
    """Merge what lives that ended early left in ``folder``."""
    for hidden in sorted(folder.glob(".bundle-*")):
        _join(folder / hidden.name.removeprefix("."))


def _parts(bundle: Path) -> Sequence[Path]:
    return [bundle.with_name(f".{bundle.name}") / node for node in NODES]


def _join(bundle: Path) -> None:
    """Merge the parts of ``bundle`` where both recorders began, and take them away."""
    parts = _parts(bundle)
    if not (bundle / NAME).exists() and all((part / NAME).exists() for part in parts):
        shutil.rmtree(bundle, ignore_errors=True)  # half of it: what says that a bundle is whole is written last
        merge(parts, bundle)
    shutil.rmtree(parts[0].parent, ignore_errors=True)
