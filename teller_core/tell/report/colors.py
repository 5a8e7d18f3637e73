"""The colors of a page and of a picture, light and dark: one table for both."""

from collections.abc import Mapping
from typing import Literal

from teller_core.data.report_timeline import Kind

Color = Literal[
    "paper", "ink", "dim", "line", "behind", "card", "red", "blue", "amber", "violet", "gray", "teal", "green", "rust",
    "rose", "slate", "sand", "on", "on_light",
]  # fmt: skip
COLORS: Mapping[Color, tuple[str, str]] = {
    "paper": ("#fdfdfc", "#15181c"),
    "ink": ("#1b1e23", "#e7e9ec"),
    "dim": ("#5d6570", "#9aa3ae"),
    "line": ("#dde1e6", "#2f353c"),
    "behind": ("#eef0f3", "#20252b"),
    "card": ("#f5f6f8", "#1c2126"),
    "red": ("#c62f2b", "#f0625c"),
    "blue": ("#4b7fc4", "#6b9fe4"),
    "amber": ("#d9962a", "#e3aa4c"),
    "violet": ("#9270c4", "#ab8ddb"),
    "gray": ("#c3c9d1", "#4b535d"),
    "teal": ("#3f9189", "#58aba3"),
    "green": ("#5b9240", "#7fb862"),
    "rust": ("#cf6f2c", "#e28b4e"),
    "rose": ("#b0779c", "#c994b7"),
    "slate": ("#8293a3", "#7f8f9e"),
    "sand": ("#cbb489", "#a8946b"),
    "on": ("#ffffff", "#101215"),
    "on_light": ("#1b1e23", "#101215"),
}
"""Each on a light page and on a dark one."""
WORDS: Mapping[Color, Color] = {"amber": "on_light", "sand": "on_light", "slate": "on_light", "gray": "ink"}
"""The color of words on a mark of each color, where it is not ``on``."""
OF_KIND: Mapping[Kind, Color] = {
    "found": "red",
    "before_server": "slate",
    "front_end": "teal",
    "queue": "sand",
    "own_prefill": "amber",
    "decode": "blue",
    "delivery": "green",
    "token": "ink",
    "prefill_step": "amber",
    "decode_step": "blue",
    "mixed_step": "violet",
    "step": "slate",
    "others_step": "gray",
    "stage": "slate",
    "pause": "rust",
    "rank": "slate",
    "wait": "rose",
    "annotation": "slate",
    "python": "slate",
    "operator": "teal",
    "runtime": "rose",
    "kernel": "green",
    "communication": "rust",
    "log": "ink",
}
OF_PART: Mapping[str, Color] = {
    "before_server": "slate",
    "front_end": "teal",
    "queue": "sand",
    "remote_kv_wait": "rose",
    "own_prefill": "amber",
    "between_own_chunks": "sand",
    "decode": "blue",
    "preempted": "rust",
    "recompute": "rust",
    "delivery": "green",
    "capture_stall": "rose",
    "unexplained": "gray",
    "device_compute": "green",
    "host_compute": "teal",
    "collective_transfer": "rust",
    "collective_wait": "rose",
    "exposed_host": "amber",
    "device_idle": "slate",
}
"""Of the parts of both breakdowns."""
OF_LAYER: Mapping[str, Color] = {
    "request": "violet",
    "engine": "blue",
    "python": "slate",
    "operator": "teal",
    "runtime": "rose",
    "kernel": "green",
    "communication": "rust",
}


def color_rules() -> str:
    """What the style sheet says of colors."""
    light = "; ".join(f"--{name}: {pair[0]}" for name, pair in COLORS.items())
    dark = "; ".join(f"--{name}: {pair[1]}" for name, pair in COLORS.items())
    rules = [f":root {{ {light} }}", f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"]
    rules += [f".k-{kind} {{ fill: var(--{color}) }}" for kind, color in OF_KIND.items()]
    rules += [f".on-{kind} {{ fill: var(--{WORDS.get(color, 'on')}) }}" for kind, color in OF_KIND.items()]
    rules += [f".p-{part} {{ fill: var(--{color}) }}" for part, color in OF_PART.items()]
    rules += [f".tree .k-{layer} {{ background: var(--{color}) }}" for layer, color in OF_LAYER.items()]
    return "\n".join(rules)
