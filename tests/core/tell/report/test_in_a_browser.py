"""The page in a real browser: it is drawn at two widths, light and dark, and nothing of it is refused."""

import shutil
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest

from teller_core.tell.report.page import report_page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
QUIET += ["--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr"]
DARK, LIGHT = 0, 1


def shot(page: Path, width: int, scheme: int) -> tuple[tuple[int, int], tuple[int, ...], str]:
    """The size of the picture of ``page``, its first pixel and what the browser complained of."""
    picture = page.with_suffix(".png")
    command = [str(BROWSER), *QUIET, f"--user-data-dir={page.parent / f'profile-{width}-{scheme}'}"]
    command += [f"--window-size={width},1200", f"--blink-settings=preferredColorScheme={scheme}"]
    done = subprocess.run(
        [*command, f"--screenshot={picture}", page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    size, pixel = first_pixel(picture.read_bytes())
    return size, pixel, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def first_pixel(png: bytes) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Width and height of a PNG, and red, green and blue of its first pixel, which no filter changes."""
    width, height = struct.unpack(">II", png[16:24])
    at, packed = 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += 12 + length
    return (width, height), tuple(zlib.decompress(packed)[1:4])


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is on the path: the page is not drawn here")
@pytest.mark.parametrize("width", [500, 1400])
def test_the_page_is_drawn_light_and_dark_and_the_browser_refuses_nothing(
    samples: Any, tmp_path: Path, width: int
) -> None:
    page = tmp_path / "page.html"
    page.write_text(report_page(samples.verdict(), samples.timeline(), samples.slice()), "utf-8")
    light, dark = shot(page, width, LIGHT), shot(page, width, DARK)
    assert light[0][0] == dark[0][0] == width
    assert min(light[1]) > 200 and max(dark[1]) < 60
    assert light[2] == dark[2] == ""
