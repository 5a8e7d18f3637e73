"""Any bytes into any reader: rows, counted problems or one of our own errors. Nothing else, and no hang."""

import gzip
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teller_core.errors import TellerError
from teller_core.ingest.found import Found, Place
from teller_core.ingest.reading import FORMATS

DATA = Path(__file__).parents[2] / "data"
OURS = {name: read for name, _, read in FORMATS if name != "kineto"}
SAMPLES = {
    name: [path.read_bytes() for case in sorted((DATA / name).glob("*")) for path in case.glob("input.*")]
    for name in OURS
}
SNIPPETS = (
    b"9" * 40,
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b"[" * 2000,
    b"\xff\xfe",
    b"\x00",
    b"\n",
    b"'",
    b'"',
    b"\\",
    b"{}",
    b"\r",
)
FUZZ = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


def read_bytes(name: str, data: bytes, suffix: str = "") -> Found | None:
    """What the reader ``name`` finds in a file of ``data``; None where it refuses it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"input{suffix}"
        path.write_bytes(data)
        try:
            return OURS[name](path, Place(near=1_795_961_987_000_000_000, salt=b"s"), None)
        except TellerError as error:
            assert "\n" not in str(error)
            return None


def check(found: Found | None) -> None:
    """Records are accounted for, positions are within, numbers fit the columns they go into."""
    if found is None:
        return
    assert found.kept <= found.events
    assert found.events <= found.kept + sum(found.other.values()) + sum(found.problems.values())
    for facts in (found.iterations, found.requests):
        assert all(fact.line is None or 0 <= fact.line < len(found.lines) for fact in facts)
    assert all(line.untrusted_text.isprintable() for line in found.lines)
    assert all(-(2**63) <= line.time < 2**63 for line in found.lines)
    for trace in found.traces:
        trace.check()


def cut_and_mixed(name: str, draw: Callable[[st.SearchStrategy[bytes]], bytes], data: st.DataObject) -> bytes:
    sample = draw(st.sampled_from(SAMPLES[name]))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(sample)))
        gone = data.draw(st.integers(0, 30))
        sample = sample[:at] + data.draw(st.sampled_from(SNIPPETS)) + sample[at + gone :]
    return sample[: data.draw(st.integers(0, len(sample)))] if data.draw(st.booleans()) else sample


@pytest.mark.parametrize("name", OURS)
@FUZZ
@given(data=st.data())
def test_a_damaged_sample_is_read_or_refused(name: str, data: st.DataObject) -> None:
    check(read_bytes(name, cut_and_mixed(name, data.draw, data)))


@pytest.mark.parametrize("name", OURS)
@FUZZ
@given(noise=st.binary(max_size=2000))
def test_noise_is_read_or_refused(name: str, noise: bytes) -> None:
    check(read_bytes(name, noise))


@pytest.mark.parametrize("name", OURS)
@settings(FUZZ, max_examples=15)
@given(data=st.data())
def test_a_cut_compressed_file_is_refused(name: str, data: st.DataObject) -> None:
    packed = gzip.compress(SAMPLES[name][0])
    assert read_bytes(name, packed[: data.draw(st.integers(2, len(packed) - 9))], ".gz") is None


@pytest.mark.parametrize("name", OURS)
@settings(FUZZ, max_examples=100)
@given(noise=st.binary(max_size=300))
def test_telling_formats_apart_never_fails(name: str, noise: bytes) -> None:
    for _, sniff, _ in FORMATS:
        sniff(noise)
        sniff(SAMPLES[name][0][:50] + noise)


@pytest.mark.parametrize("name", [name for name in OURS if name not in ("bundle_file", "flight_recorder_json")])
def test_one_line_without_an_end_takes_bounded_memory(name: str) -> None:
    check(read_bytes(name, SAMPLES[name][0] + b"x" * (3 << 20)))
