"""A server with weights: the first answer comes from numbers and rules, and a later one from the model as well."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from teller_core.model import loading
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from teller_mcp.server import build_server

pytest.importorskip("torch")
pytest.importorskip("transformers")
from tests.core.model.weights_made import weights_in

pytestmark = pytest.mark.anyio
REAL = Path(__file__).parents[1] / "data" / "captures" / "vllm_2node"


async def test_it_answers_at_once_and_then_with_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, real = threading.Event(), loading.import_module
    monkeypatch.setattr(loading, "import_module", lambda name: (held.wait(60), real(name))[1])
    path = tmp_path / "t.db"
    with Store.open(path) as store:
        import_paths([REAL], store)
    server = build_server(path, [tmp_path], weights=weights_in(tmp_path / "model"))

    async def why(client: Client) -> dict[str, Any]:
        answer = (await client.call_tool("run_rca", {"request": 1})).structured_content
        assert answer is not None
        return answer

    async with Client(server) as client:
        first = await why(client)
        assert (first["judged_by"], first["model"].partition(":")[0]) == ("numbers and rules", "loading")
        held.set()
        until = time.monotonic() + 100
        while (later := await why(client))["model"] and time.monotonic() < until:
            assert later["model"].startswith("loading")
        assert later["judged_by"] == "numbers, rules and model"
        assert later["phases"] == first["phases"]
    server.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "teller-model"]
