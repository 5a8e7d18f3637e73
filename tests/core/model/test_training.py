"""Training, from lives to a file of weights, and what comes back from that."""

import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.sheets import Sheets, cause_ids, layout_hash
from teller_core.errors import FormatError, InputError, UnknownName
from teller_core.model.classes import FIRST
from teller_core.model.judging import judged, load, spoken
from teller_core.model.options import Parts, Plan, Shape
from teller_core.model.training import CARD, UNDERWAY, WEIGHTS, Work, train
from teller_core.model.verdicts import Verdict
from tests.core.model.making import CAUSES, SYMBOLS, VOCABULARY, lives_of, sheets_of
from tests.core.model.words.making import report

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from teller_core.model.card import Reads  # noqa: E402
from teller_core.model.laying import laid  # noqa: E402
from teller_core.model.net.files import read  # noqa: E402
from teller_core.model.net.network import small  # noqa: E402

SMALL = Shape(hidden=48, layers=2, heads=2, head=24, inner=96)
READS = Reads(VOCABULARY, SYMBOLS, "said", 5)
QUICK = Plan(tokens=2048, updates=60, warm=10, look=20, threads=1, rate=4e-3)
LIVES = lives_of(5, 60, words=True)
WORK = Work(LIVES, READS, SMALL, plan=QUICK)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model")
    train(WORK, made, lambda text: None)
    return made


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def unseen() -> tuple[Sheets, np.ndarray]:
    return sheets_of(150, 99)


def test_it_learns_what_tells_causes(folder: Path) -> None:
    sheets, wanted = unseen()
    said = judged(load(folder / WEIGHTS, threads=1), sheets)
    struck = wanted >= FIRST
    assert ((said.abnormal > 0.5) == struck).mean() > 0.9
    assert (said.cause[struck] == wanted[struck]).mean() > 0.9
    named = said.verdict == Verdict.CAUSE
    assert named[struck].mean() > 0.7 and named[~struck].mean() < 0.1
    assert said.likely.sum(axis=1) == pytest.approx(np.ones(150), abs=1e-5)


def test_a_cause_that_it_never_saw_is_never_named(folder: Path) -> None:
    sheets, _ = unseen()
    said = judged(load(folder / WEIGHTS, threads=1), sheets)
    seen = [FIRST + cause_ids().index(key) for key in CAUSES]
    others = np.setdiff1d(np.arange(FIRST, said.likely.shape[1]), seen)
    assert said.likely[:, others].max() == 0.0 and np.isin(said.cause, seen).all()


def test_shares_of_operators_and_ranks_sum_to_one_in_each_sheet(folder: Path) -> None:
    sheets, _ = unseen()
    said = judged(load(folder / WEIGHTS, threads=1), sheets)
    owner = [np.repeat(np.arange(150), np.diff(at)) for at in (sheets.suspects_at, sheets.pieces_at)]
    total = np.bincount(owner[0], said.suspects, 150) + np.bincount(owner[1], said.pieces, 150)
    some = np.diff(sheets.suspects_at) + np.diff(sheets.pieces_at) > 0
    assert total[some] == pytest.approx(np.ones(some.sum()), abs=1e-4) and (total[~some] == 0).all()
    assert len(said.together) == len(sheets.together.rank) and len(said.facts) == len(sheets.facts.cause)


def test_a_sheet_is_judged_alike_whatever_is_read_beside_it(folder: Path) -> None:
    sheets, _ = sheets_of(40, 7)
    model = load(folder / WEIGHTS, threads=1)
    from teller_core.data.sheets import taken as some

    together = judged(model, sheets)
    alone = [judged(model, some(sheets, np.array([at]))) for at in range(40)]
    np.testing.assert_allclose([one.abnormal[0] for one in alone], together.abnormal, atol=1e-4)
    np.testing.assert_allclose([one.likely[0] for one in alone], together.likely, atol=1e-4)


def test_no_word_and_no_later_word_changes_the_verdict() -> None:
    network = small(SMALL, SYMBOLS, 5).eval()
    silent, speaking = (lives_of(1, 20, words=words)[0].inputs for words in (False, True))
    with torch.inference_mode():
        one, other = network(laid(silent)), network(laid(speaking))
    assert torch.allclose(one.cause, other.cause, atol=1e-4) and len(other.words) > len(one.words) == 0


def test_a_training_that_was_ended_comes_to_the_same_weights(folder: Path, tmp_path: Path) -> None:
    def stop(text: str) -> None:
        if text.startswith("update 40 "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(replace(WORK, plan=replace(QUICK, save_s=0.0)), tmp_path, stop)
    assert (tmp_path / UNDERWAY).exists() and not (tmp_path / WEIGHTS).exists()
    train(WORK, tmp_path, lambda text: None)
    ours, theirs = read(folder / WEIGHTS)[0], read(tmp_path / WEIGHTS)[0]
    assert all(torch.equal(ours[name], theirs[name]) for name in ours) and not (tmp_path / UNDERWAY).exists()


def test_another_training_does_not_go_on_from_what_one_left(tmp_path: Path) -> None:
    short = replace(WORK, plan=replace(QUICK, updates=3, save_s=0.0))

    def stop(text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(short, tmp_path, stop)
    with pytest.raises(InputError, match="another training was begun there"):
        train(replace(short, parts=Parts(logs=False)), tmp_path, stop)


def test_two_lives_at_least_are_needed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fewer than two lives"):
        train(replace(WORK, lives=LIVES[:1]), tmp_path, lambda text: None)


def test_the_clock_ends_it_too(tmp_path: Path) -> None:
    told: list[str] = []
    card = train(replace(WORK, plan=replace(QUICK, minutes=0.0)), tmp_path, told.append)
    assert card.updates <= 1 and any("the time is up" in text for text in told)


def test_the_card_says_what_it_was_made_of(folder: Path) -> None:
    card = load(folder / WEIGHTS, threads=1).card
    assert card.data == WORK.data and set(card.train) | set(card.held) == {life.name for life in LIVES}
    assert not set(card.train) & set(card.held) and len(card.held) == 1
    assert {key for key, many in card.seen.items() if many} == set(CAUSES)
    assert card.scores["cause of a struck request: top-1"] > 0.8 and 0.0 < card.calibration.threshold <= 1.0
    text = (folder / CARD).read_text("utf-8")
    assert card.data[:16] in text and "## Limits" in text and CAUSES[0] in text


def changed(path: Path, to: Path, **reads: str) -> Path:
    """The file with another card."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8 : 8 + size])
    card = json.loads(head["__metadata__"]["card"])
    card["reads"] |= reads
    head["__metadata__"]["card"] = json.dumps(card)
    made = json.dumps(head).encode()
    made += b" " * (-len(made) % 8)
    to.write_bytes(struct.pack("<Q", len(made)) + made + data[8 + size :])
    return to


def test_what_reads_sheets_of_another_layout_is_refused(folder: Path, tmp_path: Path) -> None:
    path = changed(folder / WEIGHTS, tmp_path / "foreign.safetensors", layout="0123456789abcdef")
    with pytest.raises(FormatError, match="another layout of sheets"):
        load(path, threads=1)
    assert load(folder / WEIGHTS, threads=1).card.reads.layout == layout_hash()


def test_what_speaks_other_words_judges_and_is_not_asked_for_words(folder: Path) -> None:
    model, (sheets, _) = load(folder / WEIGHTS, threads=1), sheets_of(3, 1)
    assert len(judged(model, sheets)) == 3
    with pytest.raises(FormatError, match="another set of words"):
        spoken(model, sheets, 0, report())


def test_sheets_of_another_vocabulary_are_refused(folder: Path) -> None:
    model = load(folder / WEIGHTS, threads=1)
    with pytest.raises(FormatError, match="another vocabulary of traces"):
        judged(model, replace(unseen()[0], vocabulary="foreign"))


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "none.safetensors")
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"\x10\0\0\0\0\0\0\0no header at all")
    with pytest.raises(FormatError, match="no file of a model"):
        load(broken)


def test_what_ships_is_small() -> None:
    network = small(Shape(), 1024, 400)
    total = sum(each.numel() for each in network.state_dict().values())
    assert total <= 3_000_000 and 2 * total <= 8_000_000


def test_a_network_that_reads_less_says_nothing_of_what_it_does_not_read(tmp_path: Path) -> None:
    parts = Parts(tokens=False, rules=False, horizontal=False)
    work = Work(LIVES, Reads(VOCABULARY, SYMBOLS), SMALL, parts, replace(QUICK, updates=2))
    train(work, tmp_path, lambda text: None)
    sheets, _ = unseen()
    said = judged(load(tmp_path / WEIGHTS, threads=1), sheets)
    assert len(said.pieces) == len(sheets.pieces.symbol) and not said.pieces.any() and not said.facts.any()


def test_pointers_learn_whom_to_blame(folder: Path) -> None:
    card = load(folder / WEIGHTS, threads=1).card
    assert card.scores["operator: AC@1"] > 0.6 and card.scores["rank: AC@1"] > 0.6


def test_what_training_never_saw_is_judged_apart_and_never_named_by_its_name(tmp_path: Path) -> None:
    key = CAUSES[0]
    card = train(replace(WORK, plan=replace(QUICK, updates=30, unseen=key)), tmp_path, lambda text: None)
    assert card.seen[key] == 0 and all(card.seen[other] for other in CAUSES[1:])
    assert card.scores["a cause never seen: called abnormal"] > 0.5
    assert 0.0 <= card.scores["a cause never seen: named"] <= 1.0
    assert card.scores["cause of a struck request: top-1"] > 0.5


def test_a_cause_that_nobody_knows_cannot_be_kept_from_training(tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        train(replace(WORK, plan=replace(QUICK, unseen="host.bad_luck")), tmp_path, lambda text: None)
