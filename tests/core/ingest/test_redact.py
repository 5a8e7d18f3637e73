"""What may be kept of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.ingest.redact import MAX_TEXT, clean, unclosed, visible

SECRETS = [
    "Authorization: Bearer abcdefghijklmnop1234",
    "basic dXNlcjpwYXNzd29yZA==",
    "key hf_abcdefghijklmnopqrstu",
    "openai sk-proj-abc123def456ghi",
    "aws AKIAIOSFODNN7EXAMPLE",
    "google AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_def-123",
    "slack xoxb-123456789012-abcdef",
    "api_key=abcdef123456",
    "'hf_token': 'abcdefgh'",
    '"password": "hunter2hunter2"',
    "https://user:hunter2@host/path",
    "GET /v1/models?token=abcdef123",
    "mail jane.doe+x@example.co.uk now",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
]
HIDDEN = ["abcdefghijklmnop1234", "dXNlcjpwYXNzd29yZA", "hf_abc", "abc123def456", "AKIA", "AIza", "eyJ", "xoxb"]
HIDDEN += ["abcdef123456", "abcdefgh'", "hunter2", "jane.doe", "MIIEow", "token=abcdef123"]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_not_kept(text: str) -> None:
    kept, redactions = clean(f"INFO before {text} after")
    assert redactions >= 1
    assert not [secret for secret in HIDDEN if secret in kept]
    assert kept.startswith("INFO before")


PROMPTS = [
    "Received request r: prompt: '{}', params: SamplingParams(n=1)",
    'Received request r: prompt: "{}", params: x',
    "obj=GenerateReqInput(rid='r', text='{}', input_ids=None)",
    "out={{'text': '{}', 'meta_info': {{'id': 'r'}}}}",
    '{{"messages": [{{"role": "user", "content": "{}"}}], "n": 1}}',
    '{{"inputs": "{}"}}',
    "Generated response r (streaming delta): output: '{}', output_token_ids: None",
    "tool_calls arguments='{}'",
    "a prompt cut short: prompt: '{}",
]


@pytest.mark.parametrize("form", PROMPTS)
@pytest.mark.parametrize(
    "prompt", ["tell me a mystery", "a ] b } c ) mystery", r"it\'s \"a\" mystery", "x=mystery: [1, 2"]
)
def test_a_prompt_leaves_its_length_and_a_hash(form: str, prompt: str) -> None:
    kept, redactions = clean(form.format(prompt), salt=b"salt")
    assert "mystery" not in kept
    assert " characters #" in kept
    assert redactions >= 1


@pytest.mark.parametrize("form", PROMPTS)
def test_prompts_stay_where_they_are_asked_for(form: str) -> None:
    assert "a mystery" in clean(form.format("a mystery"), keep_prompts=True).text


def test_token_ids_leave_their_number() -> None:
    assert clean("prompt_token_ids: [5, 6, 7], lora: None", salt=b"s").text.startswith("prompt_token_ids: [3 ids #")


def test_equal_prompts_are_equal_under_one_salt_and_different_under_another() -> None:
    first, again, other = (clean("prompt: 'a mystery'", salt=salt).text for salt in (b"a", b"a", b"b"))
    assert first == again != other


@pytest.mark.parametrize(
    "text",
    [
        "#token: 65165, token usage: 0.13, max_tokens=48",
        "api_key=None, tokenizer_path='m', eos_token_id=2",
        "Engine 000: Iteration(0): 1 context requests, 16 context tokens",
        "prompt tokens: 12, output tokens: 3",
        "key=[('*u64', 'D')]",
    ],
)
def test_what_is_no_secret_is_kept_as_it_is(text: str) -> None:
    assert clean(text) == (text, 0)


def test_nothing_hides_and_nothing_commands_a_terminal() -> None:
    assert visible("a\x1b[31mred\x1b[0m\x1b]0;title\x07 b\u202ec\u200bd\U000e0041\x07\te\u00a0f") == "ared bcd e f"


@given(st.text(max_size=3000), st.booleans())
def test_any_text_becomes_one_short_line_that_shows(text: str, keep: bool) -> None:
    kept = clean(text, keep_prompts=keep, salt=b"s").text
    assert len(kept) <= MAX_TEXT
    assert kept.isprintable()


def test_a_long_text_keeps_its_head_and_its_tail() -> None:
    kept = clean("begin " + "x" * 5000 + " ValueError: end").text
    assert kept.startswith("begin ")
    assert kept.endswith("ValueError: end")
    assert " more] " in kept


def test_a_prompt_that_does_not_end_is_noticed() -> None:
    assert unclosed("Received request r: prompt: 'begins")
    assert not unclosed("Received request r: prompt: 'whole', params: x")
    assert not unclosed("plain: text without quotes")
