"""The verbs of the lab: faults of a real service, and the benchmark of them."""

from pathlib import Path

from teller_core.calls.arguments import Add, Parser, actions_of, count, lives, path

SEVERITIES, MIXES = ("slight", "clear", "strong", "extreme"), ("steady", "chat", "bursty")
MODELS, SIDES, LEFT_OUT = ("plain", "deep", "wide"), ("train", "test"), ("fault", "engine", "model", "load")
"""As the lab has them, which is not loaded for a look at the help: tests compare."""


def in_the_lab(verb: Parser, common: Parser) -> None:
    """The actions of lab."""
    add = actions_of(verb, common)
    run = add("run", "do one known thing to a real service, and measure which latency it moved")
    run.add_argument(
        "--fault", required=True, metavar="NAME", help="what is done: one of teller_core/lab/injectors.toml"
    )
    run.add_argument("--seed", type=int, default=0, help="repeat a run (default: 0)")
    run.add_argument("--severity", choices=SEVERITIES, help="how hard (default: the seed's own)")
    run.add_argument("--model", choices=MODELS, default="plain", help="what is served (default: plain)")
    _served(run, "transformers")
    run.add_argument("--requests", type=count, metavar="N", help="of each of the three windows (default: 24)")
    run.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recording and the truth here")
    build = add("build", "record the lives of the benchmark that a folder lacks, and pack them")
    build.add_argument(
        "folder", type=path, metavar="FOLDER", help="where recordings are, and those that are missing go"
    )
    build.add_argument("--lives", type=lives, metavar="A-B", help="which ones of the table, from 1 on (default: all)")
    _vllm(build)
    build.add_argument("--into", type=path, metavar="PACKED", help="where packed ones go (default: tests/lab)")
    _counterfactual(add)
    judged = add("eval", "say how good a method is on the lives of the benchmark, in one table a tier")
    judged.add_argument("method", metavar="METHOD", help="one of teller_core/lab/evaluation/methods, or all")
    judged.add_argument("--lives", type=path, metavar="PACKED", help="where packed lives are (default: tests/lab)")
    known = "what is known of them (default: every tier; 4 with --leave-out and --weights)"
    judged.add_argument("--tier", type=int, choices=range(5), help=known)
    how = judged.add_mutually_exclusive_group()
    how.add_argument("--leave-out", choices=LEFT_OUT, help="judge on each one that it was never trained on")
    how.add_argument("--replayed", type=path, metavar="FOLDER", help="on replayed recordings, beside lives at tier 4")
    how.add_argument("--versus", metavar="METHOD", help="judge nothing: say how far it is from another one, as kept")
    how.add_argument(
        "--weights", type=path, metavar="FILE", help="of its model, instead of those that ship: keep nothing"
    )
    judged.add_argument(
        "--side", choices=SIDES, default="test", help="of --weights; train: lives they were chosen by (default: test)"
    )
    leaks = add("leaks", "say whether the lives of the benchmark give away what was done in them")
    leaks.add_argument("--lives", type=path, metavar="PACKED", help="where packed lives are (default: tests/lab)")
    leaks.add_argument("--replayed", type=path, metavar="FOLDER", help="whether replayed recordings do, instead")
    sheets = add("sheets", "write what the root-cause model is trained on: sheets of the lives to learn from")
    sheets.add_argument("folder", type=path, metavar="FOLDER", help="where they go, one file a life")
    sheets.add_argument("--lives", type=path, metavar="PACKED", help="where packed lives are (default: tests/lab)")
    sheets.add_argument("--replayed", type=path, metavar="FOLDER", help="of replayed recordings as well")
    sheets.add_argument("--most", type=count, metavar="N", help="of a life, at all its tiers (default: 6000)")
    replayed = add("replayed", "replay real recordings with faults put into them, and write down what is true of each")
    replayed.add_argument("folder", type=path, metavar="FOLDER", help="where the episodes go, or are made to the end")
    replayed.add_argument("recordings", type=path, nargs="+", metavar="DIR", help="where real recordings are")
    replayed.add_argument("--seed", type=int, default=0, help="make other episodes (default: 0)")
    replayed.add_argument("--episodes", type=count, metavar="N", help="at least so many (default: 3200)")


def _counterfactual(add: Add) -> None:
    rerun = add(
        "rerun",
        "send the same requests to a real service under two limits in turns: what one saves, and what was foretold",
    )
    rerun.add_argument("folder", type=path, metavar="FOLDER", help="where it is recorded, and the truth goes")
    change = rerun.add_mutually_exclusive_group(required=True)
    change.add_argument("--chunk", type=count, metavar="N", help="tokens of a step at most, less than usual")
    change.add_argument("--seats", type=count, metavar="N", help="requests of a step at most, less than 8")
    rerun.add_argument("--seed", type=int, default=0, help="repeat a rerun (default: 0)")
    rerun.add_argument("--fault", metavar="NAME", help="what is done in all windows, alike (default: nothing)")
    rerun.add_argument("--severity", choices=SEVERITIES, default="strong", help="of the fault (default: strong)")
    _served(rerun, "vllm")
    rerun.add_argument("--requests", type=count, metavar="N", help="of each window (default: 24)")
    rerun.add_argument("--starts", type=count, metavar="N", help="of the service (default: 2)")
    lifted = add("lifted", "say what each request of a recorded life would have saved without the fault that struck it")
    lifted.add_argument(
        "life",
        type=path,
        metavar="LIFE",
        help="the folder that lab run left, or a packed life (.xz); of the folder of all packed ones: how well that is predicted",
    )
    lifted.add_argument("--side", choices=SIDES, default="test", help="of all packed lives (default: test)")
    lifted.add_argument("--to", type=path, metavar="FILE", help="write what each request would have saved as JSON here")


def _served(verb: Parser, engine: str) -> None:
    verb.add_argument("--mix", choices=MIXES, default="steady", help="of the requests (default: steady)")
    verb.add_argument("--engine", choices=("vllm", "transformers"), default=engine, help=f"server (default: {engine})")
    _vllm(verb)


def _vllm(verb: Parser) -> None:
    verb.add_argument("--vllm", type=path, metavar="PROGRAM", help="vLLM's own program (default: the one on PATH)")
