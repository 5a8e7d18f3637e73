"""A small trace gathered row by row. Traces of a profiler are read as columns from the start: see ``kineto``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from teller_core.data.trace import NO_LINK, Lane, Layer, Origin, Trace


@dataclass
class Rows:
    """Rows of a trace to be."""

    times: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    codes: list[tuple[int, int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int, int]])
    names: dict[str, int] = field(default_factory=dict[str, int])
    lanes: dict[Lane, int] = field(default_factory=dict[Lane, int])
    categories: dict[str, int] = field(default_factory=dict[str, int])
    args: dict[str, int] = field(default_factory=dict[str, int])

    def add(
        self,
        start: int,
        dur: int,
        name: str,
        lane: Lane,
        *,
        category: str,
        layer: Layer = Layer.ENGINE,
        args: Mapping[str, object] | None = None,
    ) -> None:
        """Append one event. Times in ns."""
        said = -1
        if args:
            text = json.dumps(args, sort_keys=True, default=str)
            said = self.args.setdefault(text, len(self.args))
        self.times.append((start, dur))
        self.codes.append(
            (
                self.names.setdefault(name, len(self.names)),
                self.lanes.setdefault(lane, len(self.lanes)),
                self.categories.setdefault(category, len(self.categories)),
                int(layer),
                said,
            )
        )

    def traces(self, origin: Origin) -> list[Trace]:
        """The rows ordered by start, the longer first, as one Trace; none where there are no rows."""
        if not self.times:
            return []
        times = np.array(self.times, dtype=np.int64)
        codes = np.array(self.codes, dtype=np.int32)
        order = np.lexsort((-times[:, 1], times[:, 0]))
        times, codes = times[order], codes[order]
        trace = Trace(
            start=times[:, 0].copy(),
            dur=times[:, 1].copy(),
            name=codes[:, 0].copy(),
            lane=codes[:, 1].copy(),
            category=codes[:, 2].astype(np.uint8),
            layer=codes[:, 3].astype(np.uint8),
            link=np.full(len(times), NO_LINK, dtype=np.int64),
            arg=codes[:, 4].copy(),
            names=list(self.names),
            lanes=list(self.lanes),
            categories=list(self.categories),
            args=list(self.args),
            origin=origin,
        )
        return [trace]
