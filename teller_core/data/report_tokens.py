"""The answer of ``slice --raw``: a step as tokens of Trace Pair Encoding, for programs and models."""

from pydantic import Field

from teller_core.data.report_findings import Model


class RankTokens(Model):
    """The tokens of a step on one rank, an entry a token in each list, in pre-order."""

    rank: int
    events: int = Field(description="spans that the tokens stand for")
    unseen: int = Field(description="spans whose name the vocabulary does not know, those of light pieces apart")
    opened: int = Field(description="spans that the guard kept as tokens of their own")
    symbol: list[int]
    run: list[int] = Field(description="how many neighbors alike it counts")
    parent: list[int] = Field(description="the token it hangs below, -1 for none")
    depth: list[int]
    first: list[int] = Field(description="its first span: the row of a handle RANK:ROW")
    spans: list[int] = Field(description="how many spans it stands for")
    name: list[str] = Field(description="the span's name where it stands for one alone, else empty")
    own_ns: list[int] = Field(description="self time of its spans together")
    largest_ns: list[int] = Field(description="the largest self time among them")
    largest: list[int] = Field(description="the span that has it: the row of a handle")
    start_ns: list[int] = Field(description="after the first span of the step on this rank")


class SymbolText(Model):
    """What a symbol stands for."""

    symbol: int
    text: str = Field(description="a(b): b below a; [a]+: neighbors alike; light: spans too short to tell apart")


class TokensReport(Model):
    """A step as tokens of Trace Pair Encoding."""

    capture: str
    step: int
    request: int | None
    vocabulary: str = Field(description="its SHA-256")
    learned_from: str
    symbols: int = Field(description="how many it has")
    used: list[SymbolText] = Field(description="the symbols that occur")
    ranks: list[RankTokens]
    note: str
