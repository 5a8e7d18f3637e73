"""Numbers in the fields of log lines are numbers, or not there; and rules that read them answer whatever a log says."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

import teller_core.ingest.logs
from teller_core.answers import slow, why
from teller_core.data.line_fields import decimal_in, whole_in
from teller_core.pipeline import import_paths
from teller_core.store.store import Store

RECORDED = Path(__file__).parents[2] / "data" / "captures" / "vllm_full"
PATTERNS = tomllib.loads((Path(teller_core.ingest.logs.__file__).parent / "patterns.toml").read_text())["pattern"]
ODD = {"long": "9" * 5_000, "dotted": "1.2.3", "of another script": "\u0663", "large": "9" * 40}


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "1e9", "1.2.3", "\u0663", "\u00b2", "9" * 16, "9" * 5_000, " 1", "nan", None, 3]
)
def test_what_is_no_number_is_not_there(text: object) -> None:
    assert whole_in({"field": text}, "field") is None and decimal_in({"field": text}, "field") is None


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("1.50", 1.5), (".5", 0.5), ("2.", 2), ("2.5.", 2.5)])
def test_what_is_one_is_read(text: str, number: float) -> None:
    assert decimal_in({"field": text}, "field") == number
    assert whole_in({"field": "17"}, "field") == 17 and whole_in({}, "field") is None


@pytest.mark.parametrize("odd", ODD)
def test_a_log_with_any_digits_has_answers(tmp_path: Path, odd: str) -> None:
    folder = tmp_path / "recorded"
    shutil.copytree(RECORDED, folder)
    log = folder / "service.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    said = [re.sub(r"\d+(\.\d+)?", ODD[odd], pattern["sample"]) for pattern in PATTERNS]
    with log.open("a") as file:
        file.writelines(json.dumps({**rows[len(rows) // 2], "message": one}) + "\n" for one in said)
    with Store.open(tmp_path / "t.db") as store:
        (capture,) = import_paths([folder], store, jobs=1).captures
        assert capture.requests and slow(store).rows
        for number in (1, capture.requests // 2, capture.requests):
            assert why(store, str(number)).verdict
