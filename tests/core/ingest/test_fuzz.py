"""Any bytes into any reader: rows, counted problems or one of our own errors. Nothing else, in bounded time and memory.

What holds of whatever was found is in :mod:`tests.fuzz.checks`; the same is checked for longer by ``tests/fuzz``.
"""

import gzip
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.checks import READERS, check, read_bytes, samples, sniff_all
from tests.fuzz.mutations import damaged, odd_document

ROOT = Path(__file__).parents[3]
SAMPLES = {name: samples(name) for name in READERS}
ALL = [sample for listed in SAMPLES.values() for sample in listed]
SLOWEST_S = 60
"""Of this process's own time, for a file of some kilobytes: the first one may compile."""
MOST_MIB = 300
"""What a file of 64 MiB may add: a JSON value that is taken whole may be of 16 MiB, and is held some times over."""
FUZZ = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
SEEDS = st.integers(0, 2**40)


@pytest.fixture(autouse=True, scope="module")
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is compiled is compiled before anything is timed."""
    for name in ("kineto", "nsight_sqlite"):
        check(read_bytes(name, SAMPLES[name][0], tmp_path_factory.mktemp(name)))


def survives(name: str, data: bytes, folder: Path) -> None:
    before = time.process_time()
    sniff_all(data)
    check(read_bytes(name, data, folder))
    assert time.process_time() - before < SLOWEST_S


@pytest.mark.parametrize("name", READERS)
@FUZZ
@given(seed=SEEDS)
def test_a_case_with_odd_values_is_read_or_refused(name: str, tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    survives(name, odd_document(name, chance.choice(SAMPLES[name]), chance), tmp_path)


@pytest.mark.parametrize("name", READERS)
@FUZZ
@given(seed=SEEDS)
def test_a_damaged_case_is_read_or_refused(name: str, tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    survives(name, damaged(name, chance.choice(SAMPLES[name]), chance.choice(ALL), chance), tmp_path)


@pytest.mark.parametrize("name", READERS)
@settings(FUZZ, max_examples=25)
@given(noise=st.binary(max_size=2000))
def test_noise_is_read_or_refused(name: str, tmp_path: Path, noise: bytes) -> None:
    survives(name, noise, tmp_path)


@pytest.mark.parametrize("name", READERS)
@settings(FUZZ, max_examples=10)
@given(data=st.data())
def test_a_cut_compressed_file_is_refused(name: str, tmp_path: Path, data: st.DataObject) -> None:
    packed = gzip.compress(SAMPLES[name][0])
    assert read_bytes(name, packed[: data.draw(st.integers(2, len(packed) - 9))], tmp_path) is None


@pytest.mark.parametrize("name", READERS)
def test_every_case_is_accounted_for(name: str, tmp_path: Path) -> None:
    for sample in SAMPLES[name]:
        found = read_bytes(name, sample, tmp_path)
        assert found is not None
        check(found)


@pytest.mark.slow
def test_a_line_or_a_list_without_an_end_takes_memory_that_does_not_grow_with_it() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "fuzz" / "memory.py"), "64"], capture_output=True, text=True, check=True
    )
    peaks = {name: int(mib) for name, mib in (line.split() for line in done.stdout.splitlines())}
    assert list(peaks) == list(READERS)
    assert max(peaks.values()) < MOST_MIB, peaks
