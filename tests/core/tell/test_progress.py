"""How far long work is."""

import io

from teller_core.tell.progress import nobody, part_of, shown_on, staged


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_on_a_terminal_once_a_percent_and_leaves_nothing_behind() -> None:
    screen = Terminal()
    with shown_on(screen) as tell:
        tell("a\x1b.json", 0, 4_000_000)
        for done in range(3_000_000, 3_000_100):
            tell("a\x1b.json", done, 4_000_000)
        tell("judge", 0, 0)
        tell("judge", 1_000, 4_000)
    shown = screen.getvalue().split("\r\x1b[K")
    assert shown == [
        "",
        "a .json                   [                    ]   0 %  0 of 4 MB",
        "a .json                   [###############     ]  75 %  3 of 4 MB",
        "judge",
        "judge                     [#####               ]  25 %  1,000 of 4,000",
        "",
    ]


def test_progress_is_not_written_into_files() -> None:
    file = io.StringIO()
    with shown_on(file) as tell:
        tell("a.json", 1, 2)
    assert file.getvalue() == ""


def test_several_captures_have_one_bar_over_all_bytes() -> None:
    said: list[tuple[str, int, int]] = []

    def tell(stage: str, done: int, total: int) -> None:
        said.append((stage, done, total))

    second = part_of(tell, 100, 400)
    staged("check", second)("b.json", 7, 300)
    second("b.json", 30, 300)
    second("rebuild", 0, 0)
    second("judge", 5, 9)
    assert said == [("check b.json", 7, 300), ("b.json", 130, 400), ("rebuild", 0, 0), ("judge", 5, 9)]
    assert part_of(nobody, 1, 2) is nobody and staged("check", nobody) is nobody
