"""What people are told about the formats: which files are of one, and what they give."""

import sys
from collections.abc import Mapping
from typing import NamedTuple

from teller_core.data.report import FormatReport, FormatsReport
from teller_core.ingest.formats import FORMATS, UNTRIED


class Note(NamedTuple):
    """``files``: what such files are usually called. ``tier``: the best that they give alone, None where they only add to
    others.
    """

    files: str
    tier: int | None


NOTES: Mapping[str, Note] = {
    "bundle_file": Note("bundle.json", None),
    "nsight_sqlite": Note("*.sqlite", 4),
    "host_records": Note("host-PID.jsonl", 3),
    "engine_stats": Note("stats-PID-NNNN.jsonl", 2),
    "samples": Note("samples.jsonl", None),
    "client_records": Note("client.jsonl", 1),
    "bench_results": Note("*.json, *.jsonl", 1),
    "perf_analyzer": Note("profile_export.json", 1),
    "llmperf": Note("*_individual_responses.json", 1),
    "guidellm": Note("benchmarks.json", 1),
    "aiperf": Note("profile_export.jsonl", 1),
    "aiperf_summary": Note("profile_export_aiperf.json", 0),
    "arrivals": Note("*.jsonl, *.csv", 1),
    "nvtx_tsv": Note("nvtx-PID.tsv", 4),
    "cupti_records": Note("cupti-PID-N.bin", 4),
    "otel_spans": Note("*.jsonl, *.json", 1),
    "otlp_json": Note("*.json", 1),
    "otlp_protobuf": Note("*.pb, *.binpb", 1),
    "jaeger_json": Note("*.json", 1),
    "zipkin_json": Note("*.json", 1),
    "flight_recorder": Note("nccl_trace_rank_N, _dump_N", 0),
    "flight_recorder_json": Note("fr-PID-*.json, *_rank_N.json", 0),
    "nccl_inspector": Note("*.log, *.jsonl", None),
    "execution_trace": Note("*_et.json, *_eg.json", None),
    "chakra": Note("*.et", 0),
    "chakra_json": Note("*.json", 0),
    "paper_sample": Note("trace.json", 4),
    "paper_label": Note("annotation.json", None),
    "kineto": Note("*.pt.trace.json, *.json", 4),
    "prometheus": Note("metrics*.txt, *.prom", 0),
    "prometheus_json": Note("*.json", 0),
    "access_log": Note("*.log, *.json", 1),
    "engine_log": Note("*.log, *.txt, *.jsonl", 2),
}
"""One line a format."""


def formats() -> FormatsReport:
    """Every format, in the order in which a file is tried."""
    return FormatsReport(formats=[_report(name) for name, _, _ in FORMATS])


def _report(name: str) -> FormatReport:
    note = NOTES.get(name, Note("", None))
    return FormatReport(name=name, what=_what(name), files=note.files, tier=note.tier, tried=name not in UNTRIED)


def _what(name: str) -> str:
    """The first sentence of the module that recognizes the format."""
    (module,) = (sys.modules[sniff.__module__] for known, sniff, _ in FORMATS if known == name)
    text = " ".join((module.__doc__ or "").replace("``", "").split())
    return text.partition(". ")[0].rstrip(".") + "."
