"""The verbs that record, and say what can be recorded."""

from pathlib import Path

from teller_core.calls.arguments import Add, count, path
from teller_core.calls.serving import serving

PARTS = ("hooks", "plugin", "nvtx", "cupti", "scopes", "log", "collectives", "samples")
"""Of the recorder, as teller_core.collect.environment knows them, which is not loaded for a look at the help."""


def recording(add: Add) -> None:
    """Add capture and bundle."""
    record = add("capture", "run a command and record it; it ends as it would have")
    record.add_argument("--to", type=path, metavar="FOLDER", help="a new folder (default: ./teller-ENGINE-DATE-TIME)")
    record.add_argument(
        "--window",
        action="append",
        default=[],
        metavar="WHEN",
        help='when to open the profiler shortly, as often as wanted: "start" (at the first request), "30s", "100 requests" '
        '(after so many), "slow" (when a request is slower than the 50 or more before it); also at SIGUSR1',
    )
    record.add_argument("--window-steps", type=count, default=10, metavar="N", help="steps of a window (default: 10)")
    record.add_argument(
        "--window-host", action="store_true", help="operators on the host too, where a window is of the GPU by CUPTI"
    )
    record.add_argument("--most-mb", type=count, default=512, metavar="N", help="kept on disk (default: 512)")
    record.add_argument("--most-minutes", type=count, default=60, metavar="N", help="kept back to (default: 60)")
    record.add_argument(
        "--without",
        action="append",
        default=[],
        choices=PARTS,
        metavar="PART",
        help=f"leave a part out: {', '.join(PARTS)}",
    )
    record.add_argument("--quiet", action="store_true", help="do not show what the command prints")
    record.add_argument("command", nargs="+", metavar="-- COMMAND", help="what to run, as you would call it")
    record.usage = "%(prog)s [options] -- COMMAND..."
    bundle = add("bundle", "make one recording of those of several machines")
    bundle.add_argument("action", choices=("merge",), metavar="merge", help="what to do")
    bundle.add_argument("bundles", nargs="+", type=path, metavar="BUNDLE", help="the folder of each machine")
    bundle.add_argument("-o", "--to", type=path, required=True, metavar="FOLDER", help="a new folder for the whole")


def doctor(add: Add) -> None:
    """Add doctor."""
    doctor = add(
        "doctor", "say what can be recorded here, how an engine is started for it, or what became of a recording"
    )
    doctor.add_argument("recording", nargs="?", type=path, metavar="RECORDING", help="a folder that was recorded")
    doctor.add_argument(
        "--python",
        type=path,
        metavar="PATH",
        help="the interpreter of the served program (default: that of vllm, sglang or transformers on the path, else "
        "python3)",
    )
    doctor.add_argument(
        "--print",
        dest="engine",
        choices=("vllm", "sglang", "transformers"),
        help="how this engine is started so that it leaves by itself what is needed, without us around it",
    )
    doctor.add_argument(
        "--tier",
        choices=("T1", "T2"),
        default="T2",
        help="T1: a record of each request; T2: and of each step of the engine (default: T2)",
    )
    doctor.add_argument(
        "--door",
        choices=("plugin", "flags"),
        default="plugin",
        help="of vLLM: our stat logger, or its own switches alone",
    )
    doctor.add_argument("--helm", action="store_true", help="as values of vLLM's chart")
    doctor.add_argument("--to", type=path, metavar="FOLDER", help="where records would go (default: teller-records)")


def running(add: Add) -> None:
    """Add serve and demo."""
    serving(add("serve", "run the MCP server over stdio or HTTP"))
    demo = add("demo", "break a real service, and find out why it was slow")
    demo.add_argument("--seed", type=int, help="repeat an episode (default: by chance)")
    demo.add_argument("--fault", metavar="NAME", help="which fault strikes (default: by chance)")
    demo.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recording and the truth here")
