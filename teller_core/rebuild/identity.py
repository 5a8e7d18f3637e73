"""One request under many names: what the caller called it, what the front end made of that, what the engine runs.

vLLM's front end turns the caller's ``p-000`` into ``cmpl-p-000`` (the response), ``cmpl-p-000-0`` (its first prompt; a line
says ``Received request``) and ``cmpl-p-000-0-ab81adfc`` (inside the engine: eight random hex digits keep reused ids apart).
Chat requests have no prompt number: ``chatcmpl-p-000``, ``chatcmpl-p-000-ab81adfc``. Other engines keep the caller's id.
"""

import re

_RANDOM = re.compile(r"(?P<outer>.+)-[0-9a-f]{8}")
_PROMPT = re.compile(r"(?P<outer>cmpl-.+)-\d{1,4}")
_KIND = re.compile(r"(?:chat)?cmpl-(?P<outer>.+)")


def outer_names(engine_id: str) -> tuple[str, ...]:
    """The names under which ``engine_id`` may be known farther out, itself first.

    An id that merely ends like an engine's addition yields the names of both readings. So a name alone proves nothing
    where two requests have it.
    """
    names = [engine_id]
    for additions in ((_RANDOM, _PROMPT, _KIND), (_PROMPT, _KIND)):
        name = engine_id
        for addition in additions:
            if found := addition.fullmatch(name):
                name = found["outer"]
                names.append(name)
    return tuple(dict.fromkeys(names))
