"""Text of logs and traces made safe to keep: no prompts, no secrets, nothing that hides or commands a terminal, bounded.

Done at ingest, before anything is kept. What stands for a prompt is its length and a hash with a salt that is thrown away:
equal prompts of one capture can be told to be equal, and nothing can be tried against the hash later.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_TEXT = 500
"""Characters of one record that are kept: its head and, behind a gap, its tail, where exceptions say what they are."""
HEAD = 380
MAX_SCANNED = 1 << 16
"""Characters of one record that are searched for secrets. The rest is cut first, so nothing unseen is kept."""


class Cleaned(NamedTuple):
    """Text that may be kept, and how many things were taken out of it."""

    text: str
    redactions: int


_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|[@-Z\\-_])")
_PROMPT_KEYS = frozenset(
    {
        "prompt",
        "prompts",
        "prompt_token_ids",
        "token_ids",
        "input_ids",
        "origin_input_ids",
        "output_ids",
        "output_token_ids",
        "input_embeds",
        "prompt_embeds",
        "messages",
        "input",
        "inputs",
        "input_text",
        "text",
        "texts",
        "content",
        "contents",
        "output",
        "outputs",
        "output_text",
        "completion",
        "generated_text",
        "reasoning",
        "reasoning_content",
        "arguments",
        "query",
        "question",
        "instruction",
        "system",
        "stop",
        "bad_words",
        "image_data",
        "audio_data",
        "video_data",
        "images",
        "body",
    }
)
_VALUE = re.compile(r"(?<![A-Za-z_])(?P<key>[A-Za-z_]++)[\"']?\s*+[:=]\s*+(?P<open>[\"'\[{]|[bBrR][\"'])")
_MAYBE = re.compile(r"[:=]\s*+(?:[\"'\[{]|[bBrR][\"'])")
"""Without one of these there is no value of _VALUE: told at once of nearly all lines."""
_FREE = re.compile(r"text_generation_router[\w:]{0,64}: router/src/[\w/.]{1,64}:\d{1,6}: (?:Input|Output|Prompt): ")
"""What follows is a prompt without quotes, over as many lines as it has, up to the end of the record (TGI at DEBUG)."""
_BRACKET = re.compile(r"[\"'\[\](){}]")
_QUOTED = {'"': re.compile(r'(?:[^"\\]|\\.)*+', re.DOTALL), "'": re.compile(r"(?:[^'\\]|\\.)*+", re.DOTALL)}
_CLOSES = {"[": "]", "(": ")", "{": "}"}

_NAMED = re.compile(
    r"(?i)(?<![a-z#])((?:api[_-]?keys?|key|token|password|passwd|secret|authorization|credentials?|cookie)"
    r"[\"']?\s*[:=]\s*(?:\[?[\"'])?)(?!None\b|null\b|True\b|False\b|\[secret|(?:bearer|basic) \[secret)"
    r"(?!\d+(?:\.\d+)?%?(?![\w]))(?:(?:bearer|basic)\s+)?[^\s\"',)}\]&;]{6,}"
)
_NAMES = re.compile(r"(?:key|token|passw(?:or)?d|secret|authorization|credential|cookie)s?[\"']?\s*[:=]")
"""Without one of these, in small letters, there is nothing for _NAMED."""
_SECRETS: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...] = (
    (("bearer", "basic"), re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}"), r"\1 [secret]"),
    (
        ("sk-", "sk_", "hf_", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "xox", "nvapi-", "glpat-", "pk_", "rk_"),
        re.compile(
            r"(?<![A-Za-z0-9])(?:(?:hf|ghp|gho|ghs|ghu)_[A-Za-z0-9]{16,}"
            r"|(?:sk|pk|rk|github_pat|xox[baprs]|nvapi|glpat)[-_](?=[\w-]{0,200}[0-9])[\w-]{10,})"
        ),
        "[secret]",
    ),
    (("akia", "asia"), re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), "[secret]"),
    (("aiza",), re.compile(r"\bAIza[\w-]{30,}"), "[secret]"),
    (("eyj",), re.compile(r"\beyJ[\w-]{8,2000}\.[\w-]{8,2000}(?:\.[\w-]{0,2000})?"), "[secret]"),
    (
        ("private key",),
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL),
        "[secret]",
    ),
    (("@",), re.compile(r"[\w.%+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}"), "[email]"),
    (("://",), re.compile(r"(?<=://)[^\s/@\"']{1,200}@"), "[secret]@"),
    (("key", "token", "passw", "secret", "authoriz", "credential", "cookie"), _NAMED, r"\1[secret]"),
)


def clean(text: str, *, keep_prompts: bool = False, salt: bytes = b"", limit: int = MAX_TEXT) -> Cleaned:
    """As :func:`strip`, at most ``limit`` characters: a longer text keeps its head and tail."""
    stripped = strip(text, keep_prompts=keep_prompts, salt=salt)
    return stripped._replace(text=shorten(stripped.text, limit))


def strip(text: str, *, keep_prompts: bool = False, salt: bytes = b"") -> Cleaned:
    """``text`` on one line, without control sequences, invisible characters, secrets and (unless kept) prompts.

    What follows MAX_SCANNED characters, prompts not counted, is cut.
    """
    shown = visible(text)
    shown, redactions = (shown, 0) if keep_prompts else _without_prompts(shown, salt)
    shown, secrets = _without_secrets(shown[:MAX_SCANNED])
    return Cleaned(shown, redactions + secrets)


def _without_secrets(text: str) -> tuple[str, int]:
    low, redactions = text.lower(), 0
    for words, pattern, instead in _SECRETS:
        for word in words:
            if word in low:
                if pattern is not _NAMED or _NAMES.search(low) is not None:
                    text, count = pattern.subn(instead, text)
                    redactions += count
                break
    return text, redactions


def visible(text: str) -> str:
    """``text`` without escape sequences and characters that do not show; breaks and tabs become blanks or ``\\n``."""
    if text.isprintable():
        return text
    plain = _ANSI.sub("", text).replace("\r\n", "\n").replace("\n", "\\n").replace("\t", " ")
    return "".join(c if c.isprintable() else " " if c.isspace() else "" for c in plain)


def shorten(text: str, limit: int) -> str:
    """The head and the tail of ``text``, ``limit`` characters together with the mark between them."""
    if len(text) <= limit:
        return text
    gap = f" [{len(text) - limit} more] "
    head = min(HEAD, limit * 3 // 4)
    tail = max(0, limit - head - len(gap))
    return text[:head] + gap + (text[-tail:] if tail else "")


def endless(text: str) -> bool:
    """Whether a prompt begins in ``text`` that only the next record ends."""
    return "router/src/" in text and _FREE.search(text) is not None


def unclosed(text: str) -> bool:
    """Whether a prompt begins in ``text`` and does not end: what follows on the next lines still belongs to it."""
    if endless(text):
        return True
    if _MAYBE.search(text) is None:
        return False
    done = 0
    for match in _prompts(text):
        if match.start() >= done:
            done, cut = _value_end(text, match.start("open"))
            if cut:
                return True
    return False


def _prompts(text: str) -> Iterator[re.Match[str]]:
    return (match for match in _VALUE.finditer(text) if match["key"].lower() in _PROMPT_KEYS)


def _without_prompts(text: str, salt: bytes) -> tuple[str, int]:
    if "router/src/" in text and (free := _FREE.search(text)) is not None and free.end() < len(text):
        front, count = _without_values(text[: free.end()], salt)
        return front + _stand_in("", f"'{text[free.end() :]}'", salt), count + 1
    return _without_values(text, salt)


def _without_values(text: str, salt: bytes) -> tuple[str, int]:
    if _MAYBE.search(text) is None:
        return text, 0
    kept: list[str] = []
    done = count = 0
    for match in _prompts(text):
        if match.start() < done:
            continue
        begin = match.start("open")
        end, _ = _value_end(text, begin)
        value = text[begin:end]
        if len(value) <= 2:
            continue
        kept += [text[done:begin], _stand_in(match["key"].lower(), value, salt)]
        done, count = end, count + 1
    return ("".join([*kept, text[done:]]) if count else text), count


def _stand_in(key: str, value: str, salt: bytes) -> str:
    digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=salt[:64], digest_size=4).hexdigest()
    if key.endswith("_ids") and value[:1] == "[":
        return f"[{value.count(',') + 1} ids #{digest}]"
    return f"[{len(value) - 2} characters #{digest}]"


def _value_end(text: str, begin: int) -> tuple[int, bool]:
    """Where the quoted or bracketed value at ``begin`` ends, and whether the text ended first."""
    while text[begin] in "bBrR":
        begin += 1
    if text[begin] in _QUOTED:
        return _quote_end(text, begin)
    depth: list[str] = []
    at = begin
    while at < len(text):
        match = _BRACKET.search(text, at)
        if match is None:
            break
        mark, at = match[0], match.end()
        if mark in _QUOTED:
            at, cut = _quote_end(text, match.start())
            if cut:
                break
        elif mark in _CLOSES:
            depth.append(_CLOSES[mark])
        elif depth and mark == depth[-1]:
            depth.pop()
            if not depth:
                return at, False
    return len(text), True


def _quote_end(text: str, begin: int) -> tuple[int, bool]:
    match = _QUOTED[text[begin]].match(text, begin + 1)
    end = match.end() if match else len(text)
    return (end + 1, False) if end < len(text) else (len(text), True)
