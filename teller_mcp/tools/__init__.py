"""The tools, in the order in which an investigation uses them. One file a tool; at most ten, so that a model can choose."""

from teller_mcp.desk import ToolSpec
from teller_mcp.tools.capture_trace import CAPTURE_TRACE
from teller_mcp.tools.compare import COMPARE
from teller_mcp.tools.explain_operator import EXPLAIN_OPERATOR
from teller_mcp.tools.get_causal_slice import GET_CAUSAL_SLICE
from teller_mcp.tools.import_trace import IMPORT_TRACE
from teller_mcp.tools.job import JOB
from teller_mcp.tools.list_slow_requests import LIST_SLOW_REQUESTS
from teller_mcp.tools.run_rca import RUN_RCA
from teller_mcp.tools.search import SEARCH

TOOLS: tuple[ToolSpec, ...] = (
    IMPORT_TRACE,
    SEARCH,
    LIST_SLOW_REQUESTS,
    RUN_RCA,
    GET_CAUSAL_SLICE,
    EXPLAIN_OPERATOR,
    COMPARE,
)

CAPTURING: tuple[ToolSpec, ...] = (CAPTURE_TRACE, JOB)
"""The tools of a server that may record: absent elsewhere."""
