"""A step as tokens: a line a token, so that a person sees what a model is given."""

from teller_core.data.report import Cell
from teller_core.data.report_tokens import RankTokens, TokensReport
from teller_core.tell.layout import Style, many, table, wrap

LEGEND = (
    "A token is one span, or several that are often found like this: a(b) is b below a, x2 that twice in a row, light those too "
    "short to tell apart. Kept open: spans unusual here or long for their step, which no token swallows. Self ms is of all its "
    "spans together, largest ms of one."
)


def tokens_page(report: TokensReport, style: Style) -> list[str]:
    """The tokens of each rank, then where the vocabulary comes from."""
    request = "" if report.request is None else f", request {report.request}"
    lines = [style.head(f"Step {report.step}{request} as tokens, capture {report.capture[:12]}")]
    texts = {each.symbol: each.text for each in report.used}
    for rank in report.ranks:
        told = f"{many(len(rank.symbol), 'token')} for {many(rank.events, 'span')}"
        told += f", {rank.opened:,} of them kept open, {rank.unseen:,} with names the vocabulary does not know"
        lines += ["", *wrap(f"Rank at position {rank.rank}: {told}", style)]
        lines += table(["handle", "token", "spans", "self ms", "largest ms"], _rows(rank, texts), style)
    lines += [
        "",
        *wrap(LEGEND, style),
        *wrap(f"Vocabulary {report.vocabulary[:12]}: {report.symbols:,} symbols, {report.learned_from}", style),
    ]
    return [*lines, *wrap(report.note, style)] if report.note else lines


def _rows(rank: RankTokens, texts: dict[int, str]) -> list[list[Cell]]:
    return [
        [
            f"{rank.rank}:{rank.first[at]}",
            "  " * min(rank.depth[at], 20) + _text(rank, at, texts),
            rank.spans[at],
            f"{rank.own_ns[at] / 1e6:,.3f}",
            f"{rank.largest_ns[at] / 1e6:,.3f}",
        ]
        for at in range(len(rank.symbol))
    ]


def _text(rank: RankTokens, at: int, texts: dict[int, str]) -> str:
    """The span's own name says more than that the vocabulary lacks it."""
    if rank.name[at]:
        return rank.name[at]
    return texts[rank.symbol[at]] + (f" x{rank.run[at]}" if rank.run[at] > 1 else "")
