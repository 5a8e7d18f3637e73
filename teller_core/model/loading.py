"""One model for a whole process, loaded when somebody first asks for it: in the background, or while the one who asks waits."""

from functools import cached_property
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from teller_core.errors import TellerError

if TYPE_CHECKING:
    from teller_core.model.judging import Model

SHIPPED = Path(__file__).parent / "weights" / "model.safetensors"
"""The model that comes with the project."""
LOADING = "loading: ask again in some seconds"
NOT_INSTALLED = "not installed: pip install 'teller-mcp[model]'"
NOT_TRAINED = "not trained: no weights are there; teller model train makes some"
ENDING = "not loaded: this process is ending"
UNUSABLE = "not loaded: what it runs on cannot be used here; python -c 'import torch, transformers' says why"
BROKEN = "not loaded: a fault of TELLER or of what it runs on; see the log"
LIBRARIES = ("torch", "transformers")
"""What is loaded first: it takes seconds, and between the two the loading can be given up."""


def installed() -> bool:
    """Whether a model can be loaded at all: torch and transformers are optional. A look that loads neither."""
    return all(find_spec(name) is not None for name in (*LIBRARIES, "safetensors"))


class Loader:
    """Weights at ``path``, by default those that ship. With ``wait`` whoever asks waits for them."""

    def __init__(self, path: Path | None = None, *, wait: bool = False) -> None:
        self.path, self._wait = path or SHIPPED, wait
        self._lock = Lock()
        self._thread: Thread | None = None
        self._model: Model | None = None
        self._why = ""
        self._closed = False
        self.turn = Lock()
        """For who asks the model: one at a time, so that memory stays bounded."""

    @cached_property
    def identity(self) -> str:
        """16 hex digits by which answers tell models apart: the hash of the weights. Empty without weights."""
        try:
            return sha256(self.path.read_bytes()).hexdigest()[:16]
        except OSError:
            return ""

    def ask(self) -> "Model | str":
        """The model, or why it is not there: then it may be there when somebody asks again.

        Who waits loads it, and no other thread: Ctrl-C ends that at once, and there is nobody left whose end is waited for.
        """
        with self._lock:
            if self._model is None and not self._why and self._thread is None:
                self._why = self._missing()
                if not self._why and self._wait:
                    self._load()
                elif not self._why:
                    self._thread = Thread(target=self._load, name="teller-model")
                    self._thread.start()
        return self._model or self._why or LOADING

    def close(self) -> None:
        """Give up what is being loaded, and wait for the end of it: no thread is left behind."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            thread.join()

    def _missing(self) -> str:
        if self._closed:
            return ENDING
        if not self.path.is_file():
            return NOT_TRAINED
        return "" if installed() else NOT_INSTALLED

    def _load(self) -> None:
        try:
            for library in LIBRARIES:
                import_module(library)
                if self._closed:
                    self._why = ENDING
                    return
            from teller_core.model.judging import load

            self._model = load(self.path)
        except TellerError as error:
            self._why = f"not loaded: {error}"
        except (ImportError, OSError):
            self._why = UNUSABLE
        finally:
            if self._model is None and not self._why:
                self._why = BROKEN
