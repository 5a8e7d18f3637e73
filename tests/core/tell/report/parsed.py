"""A page of HTML as a parser sees it, for tests of what may be in it."""

from html.parser import HTMLParser

VOID = {"meta", "rect", "line"}
"""Elements without an end, and those that this page always closes at once."""
ACTIVE = {
    "script",
    "iframe",
    "object",
    "embed",
    "link",
    "base",
    "form",
    "input",
    "img",
    "foreignobject",
    "use",
    "image",
}
"""Elements that run, load or send something."""


class Parsed(HTMLParser):
    """A page as elements; it fails where one is closed that was not open."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of {tag} stands twice"
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"{tag} is closed where {self.open[-1:]} is open"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.texts.setdefault(tag, []).append(data)

    def text(self, tag: str) -> str:
        return " ".join(" ".join(self.texts.get(tag, [])).split())
