"""How ``teller`` is called: its verbs, their arguments and what is said about them. No more is loaded for a look at the help."""

import argparse
from collections.abc import Callable, Mapping

from teller_core.calls.arguments import Parser, number, path
from teller_core.calls.asking import fleet, inspecting, learn, reading, searching, slow
from teller_core.calls.lab import in_the_lab
from teller_core.calls.model import of_the_model
from teller_core.calls.recording import doctor, recording, running

VERSION = "0.1.0"
"""Kept here and in pyproject.toml, which a test compares: looking it up takes longer than all else of ``teller --help``."""
METRICS = ("e2e", "ttft", "tpot", "itl_max", "slo")

Verb = Callable[..., int]


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

    reading(add)
    searching(add)
    slow(add("slow", "list the requests, slowest first", which, metric))
    fleet(add("fleet", "say what makes the slowest requests of many captures slow"))
    add("why", "say why a request was slow", which, metric, named, held)
    report = add("report", "write why a request was slow as a page of HTML, with pictures", which, metric, named, held)
    report.add_argument("-o", "--to", type=path, metavar="FILE", help="where to write it; FILE.png: its picture alone")
    learn(add("learn", "learn what is usual for a service from captures in which all was well"))
    inspecting(add, which, named)
    recording(add)
    running(add)
    in_the_lab(add("lab", "make faults of a real service, and the benchmark of them"), common)
    of_the_model(add("model", "train the model of root causes, and say what one was made of"), common)
    doctor(add)
    return top
