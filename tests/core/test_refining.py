"""Answers that a model has a part in, from a store to words and back into the store."""

import json
import sqlite3
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from teller_core import answers, cli, refining
from teller_core.data.said import unsupported
from teller_core.errors import FormatError
from teller_core.judge import clues
from teller_core.judge.evidence import Clue
from teller_core.judge.scene import Scene
from teller_core.learning import forget, learn
from teller_core.model import judging
from teller_core.model.loading import LOADING, NOT_TRAINED, SHIPPED, Loader
from teller_core.model.words.completeness import told
from teller_core.model.words.saying import said
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from teller_core.tell.explain import explain
from teller_core.tell.layout import Style
from teller_core.tell.text import page
from tests.core.judge.test_learning import recorded
from tests.core.test_learning import CALLED, SLOW, keep

pytest.importorskip("torch")
pytest.importorskip("transformers")
from tests.core.model.weights_made import weights_in

REAL = Path(__file__).parents[1] / "data" / "captures" / "vllm_2node"
BOTH = "numbers, rules and model"
PLAIN = Style(width=100, color=False, unicode=False)


class Silent(Loader):
    """Weights that are there, and nobody may load."""

    def ask(self) -> str:
        raise AssertionError("it was asked again")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return weights_in(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("refining") / "t.db"
    with Store.open(path) as store:
        import_paths([REAL], store)
    return path


@pytest.fixture
def store(imported: Path) -> Generator[Store]:
    with Store.open(imported, read_only=True) as opened:
        yield opened


def test_every_request_has_an_answer_of_both_that_is_sound(store: Store, weights: Path) -> None:
    loader = Loader(weights, wait=True)
    for number in range(1, len(store.requests(store.resolve()).number) + 1):
        rules = answers.why(store, str(number))
        both = refining.refine(store, rules, loader)
        assert both.judged_by == BOTH and both.model == "" and both.unsaid == {}
        assert (both.request, both.value_ms, both.phases) == (rules.request, rules.value_ms, rules.phases)
        assert both.explanation and not unsupported(both.explanation, both)
        assert "judged by numbers, rules and model" in page(both, PLAIN)


def test_asking_again_finds_what_was_said_and_another_model_is_asked_anew(store: Store, weights: Path) -> None:
    rules = answers.why(store, "1")
    said = refining.refine(store, rules, Loader(weights, wait=True))
    assert refining.refine(store, rules, Silent(weights)) == said
    other = weights.with_name("other.safetensors")
    other.write_bytes(weights.read_bytes() + b" ")
    with pytest.raises(AssertionError, match="asked again"):
        refining.refine(store, rules, Silent(other))
    assert answers.why(store, "1").judged_by == "numbers and rules"


def test_a_promise_is_judged_anew_and_not_stored(store: Store, weights: Path) -> None:
    rules = answers.why(store, "2", slo_ms=1.0)
    both = refining.refine(store, rules, Loader(weights, wait=True), slo_ms=1.0)
    assert both.judged_by == BOTH and both.over_slo == rules.over_slo
    with pytest.raises(AssertionError, match="asked again"):
        refining.refine(store, rules, Silent(weights), slo_ms=1.0)


def test_a_store_that_another_is_writing_to_keeps_nobody_from_an_answer(store: Store, weights: Path) -> None:
    writer = sqlite3.connect(store.path, isolation_level=None)
    writer.execute("DELETE FROM refined")
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert refining.refine(store, answers.why(store, "3"), Loader(weights, wait=True)).judged_by == BOTH
    finally:
        writer.execute("ROLLBACK")
        writer.close()
    with pytest.raises(AssertionError, match="asked again"):
        refining.refine(store, answers.why(store, "3"), Silent(weights))


def test_it_is_held_against_what_was_learned_as_the_rules_are(tmp_path: Path, weights: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        slow, loader = keep(store, "0c", recorded(SLOW)), Loader(weights, wait=True)
        keep(store, "0a", recorded())
        alone = refining.refine(store, answers.why(store, "30", capture=slow), loader)
        learn(store, ["0a"])
        rules = answers.why(store, "30", capture=slow)
        both = refining.refine(store, rules, loader)
        assert both.reference == rules.reference != alone.reference == "" and both.over_work == rules.over_work
        assert refining.refine(store, rules, Silent(weights)) == both
        forget(store, CALLED)
        with pytest.raises(AssertionError, match="asked again"):
            refining.refine(store, answers.why(store, "30", capture=slow), Silent(weights))


def test_a_model_is_asked_only_at_tiers_that_it_learned_from(
    store: Store, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader, rules = Loader(weights, wait=True), answers.why(store, "6", slo_ms=1.0)
    model = loader.ask()
    assert isinstance(model, judging.Model) and set(model.card.tiers) == {f"T{tier}" for tier in range(5)}
    elsewhere = {**model.card.tiers, f"T{rules.tier}": 0}
    monkeypatch.setattr(loader, "ask", lambda: replace(model, card=replace(model.card, tiers=elsewhere)))
    alone = refining.refine(store, rules, loader, slo_ms=1.0)
    assert f"not asked: it learned from no request of which as little is recorded (tier T{rules.tier}: " in alone.model
    assert alone == rules.model_copy(update={"model": alone.model})
    assert "model: not asked" in page(alone, PLAIN)


def test_rules_are_run_once_for_the_sheet_and_for_weighing_it(
    store: Store, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader, rules = Loader(weights, wait=True), answers.why(store, "6", slo_ms=1.0)
    heard: list[int] = []
    real = clues.heard

    def counted(view: Scene) -> list[Clue]:
        heard.append(view.life.request)
        return real(view)

    monkeypatch.setattr(clues, "heard", counted)
    assert refining.refine(store, rules, loader, slo_ms=1.0).judged_by == BOTH
    assert heard == [5]


def test_of_other_metrics_numbers_and_rules_speak_alone(store: Store, weights: Path) -> None:
    rules = answers.why(store, "1", metric="ttft")
    alone = refining.refine(store, rules, Silent(weights))
    assert alone.model == refining.END_TO_END and alone.findings == rules.findings


def test_until_the_model_is_there_the_answer_is_that_of_numbers_and_rules(
    store: Store, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader, rules = Loader(weights.with_name("none")), answers.why(store, "1")
    assert refining.refine(store, rules, loader) == rules.model_copy(update={"model": NOT_TRAINED})
    other = weights.with_name("third.safetensors")
    other.write_bytes(weights.read_bytes() + b"  ")
    waiting = Loader(other)
    monkeypatch.setattr(waiting, "ask", lambda: LOADING)
    told = refining.refine(store, rules, waiting)
    assert told.model == LOADING and "model: loading" in page(told, PLAIN) and told.findings == rules.findings


def test_while_another_asks_the_model_the_answer_is_that_of_numbers_and_rules(
    store: Store, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refining, "WAIT_S", 0.0)
    loader, rules = Loader(weights, wait=True), answers.why(store, "5", slo_ms=1.0)
    with loader.turn:
        assert refining.refine(store, rules, loader, slo_ms=1.0) == rules.model_copy(update={"model": refining.BUSY})
    assert refining.refine(store, rules, loader, slo_ms=1.0).judged_by == BOTH


def test_a_model_that_cannot_read_the_sheet_leaves_the_answer_of_numbers_and_rules(
    store: Store, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def foreign(*_: object) -> None:
        raise FormatError("The model", "it was trained with another vocabulary of traces", "Train it again")

    monkeypatch.setattr(judging, "opinions", foreign)
    loader, rules = Loader(weights, wait=True), answers.why(store, "5", slo_ms=1.0)
    alone = refining.refine(store, rules, loader, slo_ms=1.0)
    assert alone.judged_by == rules.judged_by and alone.findings == rules.findings
    assert "another vocabulary of traces" in alone.model and not loader.turn.locked()


def test_one_switch_lets_the_model_speak_and_counts_what_it_may_not_say(
    store: Store, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refining, "WORDS", "model")
    for number in (1, 2, 3):
        rules = answers.why(store, str(number), slo_ms=1.0)
        both = refining.refine(store, rules, Loader(weights, wait=True), slo_ms=1.0)
        assert both.explanation and not unsupported(both.explanation, both)


def test_of_a_capture_too_large_to_be_read_whole_the_model_sees_what_tables_say(
    store: Store, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refining, "KEPT_ROWS", 0)
    seen = [refining._case(store, store.resolve())]  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(refining, "MOST_ROWS", 0)
    seen.append(refining._case(store, store.resolve()))  # pyright: ignore[reportPrivateUsage]
    assert [any(rank.tree is not None for rank in case.capture.ranks) for case in seen] == [True, False]
    rules = answers.why(store, "4", slo_ms=1.0)
    assert refining.refine(store, rules, Loader(weights, wait=True), slo_ms=1.0).judged_by == BOTH


def test_what_was_refined_is_said_in_the_plain_words_of_the_grammar(store: Store, weights: Path) -> None:
    for number in range(1, len(store.requests(store.resolve()).number) + 1):
        both = refining.refine(store, answers.why(store, str(number)), Loader(weights, wait=True))
        assert both.explanation == said(both).text != explain(both).explanation
        assert told(both.explanation, both)["request"] and told(both.explanation, both)["what"]


@pytest.mark.skipif(SHIPPED.is_file(), reason="a model ships")
def test_the_command_line_says_in_one_line_why_there_is_no_model(
    imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["why", "1", "--model", "--json", "--db", str(imported)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["judged_by"], said["model"]) == ("numbers and rules", NOT_TRAINED)
    assert cli.main(["why", "1", "--json", "--db", str(imported)]) == 0
    assert json.loads(capsys.readouterr().out) == {**said, "model": ""}


def test_the_command_line_waits_for_a_model_of_ones_own(
    imported: Path, weights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["why", "1", "--weights", str(weights), "--json", "--db", str(imported)]) == 0
    assert json.loads(capsys.readouterr().out)["judged_by"] == BOTH
