"""The timeline as a picture: the same marks and colors, on a machine with fonts or without."""

import sys
from io import BytesIO
from typing import Any

import pytest

from teller_core.errors import MissingExtra
from teller_core.tell.report.colors import COLORS
from teller_core.tell.report.drawn import LABELS, LINE, LONGEST_LINE, MARGIN, WIDTH, drawn
from teller_core.tell.report.picture import below


def opened(png: bytes) -> Any:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: no picture is drawn here")
    return image.open(BytesIO(png)).convert("RGB")


def rgb(color: str) -> tuple[int, ...]:
    return tuple(int(color[at : at + 2], 16) for at in (1, 3, 5))


def pixels(image: Any, color: str) -> int:
    """How many pixels are of ``color``."""
    return sum(count for count, seen in image.getcolors(1 << 24) if seen == rgb(color))


def test_a_picture_shows_the_marks_in_their_colors_light_and_dark(samples: Any) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed: no picture is drawn here")
    for dark in (False, True):
        image = opened(drawn(samples.timeline(), "Why", dark=dark))
        assert image.width == WIDTH and 300 < image.height < 1500
        assert pixels(image, COLORS["paper"][dark]) > 0.4 * image.width * image.height
        for color in ("amber", "blue", "red", "teal"):
            assert pixels(image, COLORS[color][dark]) > 100, (color, dark)


def test_a_mark_is_as_wide_as_its_share_of_the_scale(samples: Any) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed: no picture is drawn here")
    image = opened(drawn(samples.timeline(), "Why"))
    amber = rgb(COLORS["amber"][0])
    near = [[image.getpixel((x, y)) == amber for x in range(WIDTH)] for y in range(80, 160)]
    widest = max(sum(row) for row in near)
    assert widest == pytest.approx(1200 / 4812.4 * (WIDTH - 2 * MARGIN - LABELS), abs=2)


def test_a_picture_of_nothing_says_why(samples: Any) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed: no picture is drawn here")
    none = samples.timeline().model_copy(update={"panels": [], "note": "nobody timed it"})
    image = opened(drawn(none, "Why"))
    assert image.height < 200 and pixels(image, COLORS["paper"][0]) < image.width * image.height


def test_a_picture_says_what_a_page_says_below_a_panel(samples: Any) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed: no picture is drawn here")
    plain = samples.timeline()
    panels = [panel.model_copy(update={"merged": 0, "left_out": 0, "note": ""}) for panel in plain.panels]
    bare = plain.model_copy(update={"panels": panels})
    long = "not drawn for want of room: 4 ranks, 1,200 log lines, 37 pauses; " * 4
    noted = bare.model_copy(update={"panels": [panels[0].model_copy(update={"note": long, "merged": 3}), *panels[1:]]})
    before, after = opened(drawn(bare, "Why")), opened(drawn(noted, "Why"))
    lines = -(-len(below(noted.panels[0])) // LONGEST_LINE)
    more = after.height - before.height
    assert lines > 1 and more % LINE == 0 and lines * LINE <= more <= (lines + 1) * LINE
    paper = COLORS["paper"][0]
    said = after.width * more - (pixels(after, paper) - pixels(before, paper))
    assert said > 1000 * lines  # a line of words covers some thousand pixels


def test_a_picture_says_what_it_was_set_beside_and_why(samples: Any) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed: no picture is drawn here")
    one = samples.timeline()
    heights = [opened(drawn(one.model_copy(update={"note": note}), "Why")).height for note in ("", "no profile")]
    assert heights[1] - heights[0] == LINE


def test_hostile_words_are_drawn_as_words(samples: Any) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed: no picture is drawn here")
    assert drawn(samples.timeline(samples.hostile * 40), samples.hostile * 40).startswith(b"\x89PNG")


def test_without_pillow_a_picture_is_refused_and_what_to_install_is_said(
    samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingExtra, match=r"Install teller-mcp\[pictures\]"):
        drawn(samples.timeline(), "Why")
