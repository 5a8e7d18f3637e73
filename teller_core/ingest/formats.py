"""The formats that can be read, in the order in which a file is tried. A format is one file and one line here."""

from dataclasses import replace
from pathlib import Path

from teller_core.data.records import Process
from teller_core.ingest.callers import aiperf, aiperf_summary, arrivals, bench_results, client_records
from teller_core.ingest.callers import guidellm as bench_guidellm
from teller_core.ingest.callers import llmperf as bench_llmperf
from teller_core.ingest.callers import perf_analyzer as bench_perf_analyzer
from teller_core.ingest.executions import chakra, chakra_json, execution_trace, paper_label, paper_sample
from teller_core.ingest.files.file_names import pid_of
from teller_core.ingest.found import Found, Place, Progress, Read, Sniff
from teller_core.ingest.kineto import reader as kineto
from teller_core.ingest.logs import reader as engine_log
from teller_core.ingest.metrics import api as prometheus_json
from teller_core.ingest.metrics import page as prometheus
from teller_core.ingest.nccl import flight_recorder, flight_recorder_json
from teller_core.ingest.nccl import inspector as nccl_inspector
from teller_core.ingest.nsight import reader as nsight
from teller_core.ingest.otel import jaeger as otel_jaeger
from teller_core.ingest.otel import protobuf as otel_protobuf
from teller_core.ingest.otel import reader as otel
from teller_core.ingest.otel import zipkin as otel_zipkin
from teller_core.ingest.proxies import access_log
from teller_core.ingest.recorder import bundle_file, cupti_records, engine_stats, host_records, nvtx_tsv, samples


def _kineto(path: Path, place: Place, progress: Progress | None) -> Found:
    trace = kineto.read(path, progress=progress)
    pid = trace.origin.pid or pid_of(path)
    host = place.host if place.bundle else trace.origin.host or ""
    trace = replace(trace, origin=replace(trace.origin, host=host or None, pid=pid))
    found = Found(clock=trace.origin.clock, events=trace.events_in_file, kept=len(trace), traces=[trace])
    found.other.update(trace.events_other)
    found.problems.update(trace.problems)
    if pid:
        found.processes.append(Process(host, pid, rank=trace.origin.rank))
    return found


FORMATS: tuple[tuple[str, Sniff, Read], ...] = (
    (bundle_file.NAME, bundle_file.sniff, bundle_file.read),
    (nsight.NAME, nsight.sniff, nsight.read),
    (host_records.NAME, host_records.sniff, host_records.read),
    (engine_stats.NAME, engine_stats.sniff, engine_stats.read),
    (samples.NAME, samples.sniff, samples.read),
    (client_records.NAME, client_records.sniff, client_records.read),
    (bench_results.NAME, bench_results.sniff, bench_results.read),
    (bench_perf_analyzer.NAME, bench_perf_analyzer.sniff, bench_perf_analyzer.read),
    (bench_llmperf.NAME, bench_llmperf.sniff, bench_llmperf.read),
    (bench_guidellm.NAME, bench_guidellm.sniff, bench_guidellm.read),
    (aiperf.NAME, aiperf.sniff, aiperf.read),
    (aiperf_summary.NAME, aiperf_summary.sniff, aiperf_summary.read),
    (arrivals.NAME, arrivals.sniff, arrivals.read),
    (nvtx_tsv.NAME, nvtx_tsv.sniff, nvtx_tsv.read),
    (cupti_records.NAME, cupti_records.sniff, cupti_records.read),
    (otel.NAME, otel.sniff, otel.read),
    (otel.OTLP, otel.sniff_otlp, otel.read_otlp),
    (otel_protobuf.NAME, otel_protobuf.sniff, otel_protobuf.read),
    (otel_jaeger.NAME, otel_jaeger.sniff, otel_jaeger.read),
    (otel_zipkin.NAME, otel_zipkin.sniff, otel_zipkin.read),
    (flight_recorder.NAME, flight_recorder.sniff, flight_recorder.read),
    (flight_recorder_json.NAME, flight_recorder_json.sniff, flight_recorder_json.read),
    (nccl_inspector.NAME, nccl_inspector.sniff, nccl_inspector.read),
    (execution_trace.NAME, execution_trace.sniff, execution_trace.read),
    (chakra.NAME, chakra.sniff, chakra.read),
    (chakra_json.NAME, chakra_json.sniff, chakra_json.read),
    (paper_sample.NAME, paper_sample.sniff, paper_sample.read),
    (paper_label.NAME, paper_label.sniff, paper_label.read),
    ("kineto", kineto.sniff, _kineto),
    (prometheus.NAME, prometheus.sniff, prometheus.read),
    (prometheus_json.NAME, prometheus_json.sniff, prometheus_json.read),
    (access_log.NAME, access_log.sniff, access_log.read),
    (engine_log.NAME, engine_log.sniff, engine_log.read),
)
"""(name, sniff, read) in the order in which they are asked. A format is one file and one line here."""

UNTRIED = frozenset(
    {
        aiperf.NAME,
        aiperf_summary.NAME,
        bench_guidellm.NAME,
        bench_llmperf.NAME,
        bench_perf_analyzer.NAME,
        bench_results.NAME,
        chakra_json.NAME,
        nccl_inspector.NAME,
        otel.OTLP,
        otel_jaeger.NAME,
        otel_protobuf.NAME,
        otel_zipkin.NAME,
        paper_label.NAME,
        paper_sample.NAME,
        prometheus_json.NAME,
    }
)
"""Formats whose reader has never seen a real file: docs/formats.md says so."""


def sniffed(head: bytes) -> str:
    """The name of the format of a file that begins with the expanded bytes ``head``, empty where it is of none."""
    return next((name for name, sniff, _ in FORMATS if sniff(head)), "")


def reader_of(name: str) -> Read:
    """The reader of the format called ``name``. Raises KeyError for one that is not there."""
    return {known: read for known, _, read in FORMATS}[name]
