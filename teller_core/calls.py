"""How ``teller`` is called: its verbs, their arguments and what is said about them."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from teller_core.errors import InputError

VERSION = "0.1.0"
"""Kept here and in pyproject.toml, which a test compares: looking it up takes longer than all else of ``teller --help``."""
PARTS = ("hooks", "plugin", "nvtx", "cupti", "scopes", "log", "collectives", "samples")
"""Of the recorder, as teller_core.collect.environment knows them, which is not loaded for a look at the help."""
SEVERITIES, MIXES = ("slight", "clear", "strong", "extreme"), ("steady", "chat", "bursty")
MODELS, SIDES, LEFT_OUT = ("plain", "deep", "wide"), ("train", "test"), ("fault", "engine", "model", "load")
"""As the lab has them, which is not loaded either: tests compare."""
READ = ("tokens", "parent", "depth", "durations", "logs", "numbers", "rules", "horizontal")
"""As teller_core.model.options has them."""
METRICS = ("e2e", "ttft", "tpot", "itl_max", "slo")

Verb = Callable[..., int]


class Parser(argparse.ArgumentParser):
    """A parser whose refusals read like all others."""

    def error(self, message: str) -> NoReturn:
        """Raise InputError."""
        raise InputError("the call" if self.prog == "teller" else self.prog, message, f"See {self.prog} --help")


def parser(verbs: Mapping[str, Verb]) -> Parser:
    """The parser of the command line. What it parses has in ``verb`` the function of ``verbs`` that was called by name."""
    common = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "--db", type=path, metavar="FILE", help="where captures are kept (else TELLER_DB, else the user's data folder)"
    )
    common.add_argument("--json", action="store_true", help="print the answer as JSON")
    common.add_argument("--debug", action="store_true", help="show the full trace of a fault of TELLER itself")
    which = Parser(add_help=False)
    which.add_argument("--capture", metavar="ID", help="any unique prefix of a capture's id (default: the newest)")
    metric = Parser(add_help=False)
    metric.add_argument("--metric", choices=METRICS, default="e2e", help="what slow means (default: end to end)")
    metric.add_argument("--slo-ms", type=number, metavar="MS", help="the latency that was promised")
    named, held = Parser(add_help=False), Parser(add_help=False)
    named.add_argument("request", metavar="REQUEST", help="its number, or the engine's, the client's or the trace's id")
    held.add_argument("--against", metavar="NAME", help="a baseline of `learn` (default: its service's, if known)")
    held.add_argument("--model", action="store_true", help="ask the model of root causes as well, once it is loaded")
    held.add_argument("--weights", type=path, metavar="FILE", help="of the model to ask (default: those that ship)")
    top = Parser(prog="teller", description="Why was this LLM request slow?", parents=[common])
    top.add_argument("--version", action="version", version=f"teller {VERSION}", help="show the version and leave")
    below = top.add_subparsers(metavar="VERB", required=True, parser_class=Parser)

    def add(name: str, text: str, *parents: Parser) -> Parser:
        made: Parser = below.add_parser(
            name, parents=[common, *parents], help=text, description=f"{text[0].upper()}{text[1:]}."
        )
        made.set_defaults(verb=verbs[name])
        return made

    _reading(add)
    _slow(add("slow", "list the requests, slowest first", which, metric))
    add("why", "say why a request was slow", which, metric, named, held)
    report = add("report", "write why a request was slow as a page of HTML, with pictures", which, metric, named, held)
    report.add_argument("-o", "--to", type=path, metavar="FILE", help="where to write it; FILE.png: its picture alone")
    _learn(add("learn", "learn what is usual for a service from captures in which all was well"))
    _inspecting(add, which, named)
    _recording(add)
    _running(add)
    _lab(add("lab", "make faults of a real service, and the benchmark of them"), common)
    _model(add("model", "train the model of root causes, and say what one was made of"), common)
    _doctor(add)
    return top


def _reading(add: Callable[..., Parser]) -> None:
    read = add("import", "read traces, logs and recorded folders; start here")
    read.add_argument(
        "paths", nargs="+", type=path, metavar="PATH", help="files, folders, archives, or a quoted pattern"
    )
    joined = read.add_mutually_exclusive_group()
    joined.add_argument("--together", action="store_true", help="all of it was recorded together: one capture")
    joined.add_argument("--apart", action="store_true", help="every file is a capture of its own")
    read.add_argument("--keep-prompts", action="store_true", help="do not take people's prompts out of log lines")
    read.add_argument(
        "--jobs", type=count, metavar="N", help="files read at once (default: what processors and memory allow)"
    )
    add("captures", "list what was imported")
    add("formats", "list what can be read")


def _slow(slow: Parser) -> None:
    slow.add_argument(
        "--view", choices=("vertical", "horizontal"), default="vertical", help="requests, or ranks side by side"
    )
    slow.add_argument("--limit", type=count, default=20, help="rows of a page (default: 20)")
    slow.add_argument("--cursor", help="the next page: what the page before says behind More")


def _learn(learn: Parser) -> None:
    learn.add_argument(
        "captures", nargs="*", metavar="CAPTURE", help="their ids, `last`, or files and folders as import reads them"
    )
    learn.add_argument("--as", dest="name", metavar="NAME", help="what the baseline is called (default: the service's)")
    learn.add_argument(
        "--healthy", action="store_true", help="all was well, although causes were found: that is how it always is"
    )
    other = learn.add_mutually_exclusive_group()
    other.add_argument("--list", action="store_true", help="say which baselines there are")
    other.add_argument("--forget", metavar="NAME", help="remove one")


def _inspecting(add: Callable[..., Parser], which: Parser, named: Parser) -> None:
    cut = add("slice", "show the spans that bear on a request or a step", which)
    cut.add_argument("target", nargs="+", metavar="TARGET", help="request 42, step 17, or a span's handle RANK:ROW")
    cut.add_argument(
        "--budget",
        type=count,
        default=4000,
        help="how much to show, in tokens of an assistant (default: 4000, some 50 lines)",
    )
    cut.add_argument(
        "--nodes", type=count, metavar="N", help="the most lines of spans (default: what the budget allows)"
    )
    cut.add_argument(
        "--rank", type=int, help="one process, by its position among the capture's ranks, from 0 (default: all)"
    )
    instead = cut.add_mutually_exclusive_group()
    instead.add_argument(
        "--raw", action="store_true", help="the whole step as Trace Pair Encoding, as a model reads it"
    )
    instead.add_argument("--chrome", type=path, metavar="FILE", help="write all its spans as a trace for Perfetto")
    explain = add("explain-op", "say what an operator is and does here", which)
    explain.add_argument("name", metavar="NAME", help="as a slice shows it: aten::mm, a kernel, a collective")
    compare = add("compare", "compare two requests or two captures", which)
    compare.add_argument("before", metavar="BEFORE", help="a request, CAPTURE/REQUEST, or a capture's id")
    compare.add_argument("after", metavar="AFTER", help="another one of the same kind")
    what_if = "say how much sooner a request would have ended had something taken another time"
    suppose = add("what-if", what_if, which, named)
    suppose.add_argument(
        "supposed",
        nargs="+",
        metavar="TARGET=DURATION",
        help='what took what instead, all of it together: "step 17=10ms", "step 17=usual" (what its work predicts), '
        "steps=usual (those that took longer), a span's handle RANK:ROW=1ms, or an operator's name as aten::mm=1ms",
    )
    suppose.add_argument("--metric", choices=("e2e", "ttft"), default="e2e", help="ended, or had its first token")


def _recording(add: Callable[..., Parser]) -> None:
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


def _running(add: Callable[..., Parser]) -> None:
    serve = add("serve", "run the MCP server over stdio")
    serve.add_argument("--root", type=Path, action="append", default=[], metavar="FOLDER", help="what may be imported")
    serve.add_argument(
        "--allow-capture",
        type=Path,
        metavar="PROFILES",
        help="a file that says what may be recorded (default: nothing)",
    )
    serve.add_argument("--weights", type=path, metavar="FILE", help="of the model (default: those that ship)")
    demo = add("demo", "break a real service, and find out why it was slow")
    demo.add_argument("--seed", type=int, help="repeat an episode (default: by chance)")
    demo.add_argument("--fault", metavar="NAME", help="which fault strikes (default: by chance)")
    demo.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recording and the truth here")


def _actions(verb: Parser, common: Parser) -> Callable[[str, str], Parser]:
    """What adds an action to ``verb``, from its name and what it does."""
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)

    def add(name: str, text: str) -> Parser:
        return actions.add_parser(name, parents=[common], help=text, description=f"{text[0].upper()}{text[1:]}.")

    return add


def _lab(lab: Parser, common: Parser) -> None:
    add = _actions(lab, common)
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
    known = "what is known of them (default: every tier; 4 with --leave-out)"
    judged.add_argument("--tier", type=int, choices=range(5), help=known)
    judged.add_argument("--leave-out", choices=LEFT_OUT, help="judge on each one that it was never trained on")
    judged.add_argument(
        "--replayed", type=path, metavar="FOLDER", help="on replayed recordings, beside lives at tier 4"
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


def _counterfactual(add: Callable[..., Parser]) -> None:
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


def _model(model: Parser, common: Parser) -> None:
    add = _actions(model, common)
    train = add("train", "train a model on the sheets of lives; what was ended goes on where it stood")
    train.add_argument("--updates", type=count, metavar="N", help="of the optimizer at most (default: 1800)")
    ablate = add("ablate", "say what each part of the input is worth, each left out once, on a reduced budget")
    ablate.add_argument(
        "--without",
        action="append",
        choices=READ,
        metavar="PART",
        help=f"one or more of {', '.join(READ)} (default: all)",
    )
    ablate.add_argument("--paper", action="store_true", help="also the paper's two networks, rebuilt at this size")
    ablate.add_argument(
        "--vocabularies",
        type=path,
        metavar="PACKED",
        help="instead: what the size of the vocabulary, its guard and its rule are worth, on sheets of the lives packed there",
    )
    ablate.add_argument("--seeds", type=count, default=1, metavar="N", help="trainings of each (default: 1)")
    for each, minutes in ((train, 36), (ablate, 9)):
        each.add_argument(
            "--sheets",
            type=path,
            required=each is train,
            metavar="FOLDER",
            help="those of the training side, one file a life",
        )
        each.add_argument("--to", type=path, required=True, metavar="FOLDER", help="where what is trained goes")
        each.add_argument("--minutes", type=number, metavar="M", help=f"of each training at most (default: {minutes})")
        each.add_argument("--backbone", type=path, metavar="FOLDER", help="a causal language model to train around")
        each.add_argument("--threads", type=count, default=2, metavar="N", help="of processors (default: 2)")
    train.add_argument("--seed", type=int, default=0, help="of all that chance decides (default: 0)")
    train.add_argument(
        "--unseen", default="", metavar="CAUSE", help="learn nothing of it, to see what is said of it then"
    )
    card = add("card", "say what a model was made of, and how good it is where that could be checked")
    card.add_argument("file", nargs="?", type=path, metavar="FILE", help="its weights (default: the shipped ones)")


def _served(verb: Parser, engine: str) -> None:
    verb.add_argument("--mix", choices=MIXES, default="steady", help="of the requests (default: steady)")
    verb.add_argument("--engine", choices=("vllm", "transformers"), default=engine, help=f"server (default: {engine})")
    _vllm(verb)


def _vllm(verb: Parser) -> None:
    verb.add_argument("--vllm", type=path, metavar="PROGRAM", help="vLLM's own program (default: the one on PATH)")


def _doctor(add: Callable[..., Parser]) -> None:
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


def path(text: str) -> Path:
    """A path that was really named: an empty one, as an unset variable of a shell gives, would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: is a variable of your shell not set?")
    return Path(text)


# argparse says the names of these two where they raise ValueError.
def number(text: str) -> float:
    """A number over 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"it has to be over 0, not {text}")
    return value


def count(text: str) -> int:
    """A whole number from 1 on."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"it has to be at least 1, not {text}")
    return value


def option(given: argparse.Namespace, name: str) -> Any:
    """An option that may stand before or after the verb."""
    return getattr(given, name, None)


def lives(text: str) -> tuple[int, int]:
    """The first and the last of some numbers from 1 on: ``3-7``, or ``3`` alone."""
    first, dash, last = text.partition("-")
    low = count(first)
    high = count(last) if dash else low
    if high < low:
        raise argparse.ArgumentTypeError(f"the last comes before the first in {text}")
    return low, high
