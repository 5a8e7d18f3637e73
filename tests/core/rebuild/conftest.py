"""A small continuous-batching engine, written apart from what it tests, and the records that one leaves."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from teller_core.data.log_lines import LogLine
from teller_core.data.records import (
    ClientRecord,
    Decision,
    Execution,
    FileRead,
    Iteration,
    Process,
    Recording,
    RequestFact,
)

MS = 10**6
BEGIN = 1_800_000_000 * 10**9
FRONTEND, ENGINE, WORKER = Process("", 1, "frontend"), Process("", 2, "engine"), Process("", 3, "worker")


@dataclass
class Job:
    """A request of the simulated service."""

    name: str
    arrives: int
    prompt: int
    output: int
    computed: int = 0
    made: int = 0
    preempted: int = 0
    tokens_at: list[int] = field(default_factory=list[int])


@dataclass
class Service:
    """The engine, what it records, and the truth: by step, tokens and tokens in the cache of each request."""

    rng: random.Random
    ahead: bool
    room: int
    jobs: list[Job]
    recording: Recording = field(
        default_factory=lambda: Recording(files=[FileRead("a", "engine_log", 1)], engine="vllm")
    )
    steps: list[dict[str, tuple[int, int]]] = field(default_factory=list[dict[str, tuple[int, int]]])
    evicted: list[int] = field(default_factory=list[int])
    times: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])
    """scheduled, launched, finished, delivered."""
    running: list[Job] = field(default_factory=list[Job])
    waiting: list[Job] = field(default_factory=list[Job])
    gone: list[str] = field(default_factory=list[str])

    @property
    def prompts(self) -> dict[str, int]:
        """Prompt tokens by request."""
        return {job.name: job.prompt for job in self.jobs}

    def run(self) -> None:
        """Serve all jobs."""
        clock, queue = BEGIN, list(self.jobs)
        seats, budget = self.rng.randrange(2, 9), self.rng.choice([64, 256, 2048])
        while queue or self.waiting or self.running:
            while queue and queue[0].arrives <= clock:
                self.waiting.append(queue.pop(0))
            tokens, lost = self.choose(seats, budget)
            if tokens:
                clock = self.record(tokens, lost, clock)
                self.finish(tokens)
            else:
                clock += MS
                self.recording.decisions.append(Decision(ENGINE, clock, 10_000, {}, lost, self.gone))
                self.gone = []

    def choose(self, seats: int, budget: int) -> tuple[dict[str, int], list[str]]:
        """One decision: those that run, the newest evicted where the cache is full, then the queue in its order."""
        tokens: dict[str, int] = {}
        lost: list[str] = []
        for job in list(self.running):
            need = min(job.prompt + job.made - job.computed, budget - sum(tokens.values()))
            while (
                self.used() + sum(tokens.values()) + need > self.room
                and job in self.running
                and self.running[-1] is not job
            ):
                victim = self.running.pop()
                tokens.pop(victim.name, None)
                victim.computed, victim.preempted = 0, victim.preempted + 1
                self.waiting.insert(0, victim)
                lost.append(victim.name)
            if need > 0 and job in self.running:
                tokens[job.name] = need
        while self.waiting and not lost and len(self.running) < seats:
            job = self.waiting[0]
            need = min(job.prompt + job.made, budget - sum(tokens.values()))
            if need <= 0 or self.used() + sum(tokens.values()) + job.prompt + job.made > self.room:
                break
            self.running.append(self.waiting.pop(0))
            tokens[job.name] = need
        return tokens, lost

    def used(self) -> int:
        """Tokens in the cache."""
        return sum(job.computed for job in self.running)

    def record(self, tokens: dict[str, int], lost: list[str], clock: int) -> int:
        """Note one step. Scheduling ahead, its decision is made while the step before it still runs."""
        jobs = {job.name: job for job in self.jobs if job.name in tokens}
        last = self.times[-1] if self.times else (BEGIN,) * 4
        decided = max(clock, last[1] if self.ahead else last[2]) + 100_000
        dur = self.rng.randrange(20_000, 300_000)
        launched = max(decided + dur, last[2]) + self.rng.randrange(10_000, 2 * MS)
        ran = self.rng.randrange(3 * MS, 40 * MS)
        written = launched + ran + self.rng.randrange(100_000, 5 * MS)
        new = {name: job.prompt for name, job in jobs.items() if not (job.computed or job.made or job.preempted)}
        self.recording.decisions.append(Decision(ENGINE, decided, dur, tokens, lost, self.gone, new))
        self.recording.executions.append(Execution(WORKER, launched, ran, tokens))
        self.gone = []
        self.write(tokens, {name: n for name, n in tokens.items() if not jobs[name].made}, ran, written)
        self.steps.append({name: (n, jobs[name].computed) for name, n in tokens.items()})
        self.evicted.append(len(lost))
        self.times.append((decided + dur, launched, launched + ran, written + 1000))
        return launched + (0 if self.ahead else ran)

    def write(self, tokens: dict[str, int], context: dict[str, int], ran: int, written: int) -> None:
        """The line that counts a step."""
        n = len(self.steps)
        line = self.line("vllm.iteration", f"Iteration({n})", written)
        full = (self.used() + sum(tokens.values())) / self.room
        requests, total = len(tokens) - len(context), sum(tokens.values()) - sum(context.values())
        self.recording.iterations.append(
            Iteration(
                FRONTEND, written, 1000, 0, n, len(context), sum(context.values()), requests, total, ran, full, line
            )
        )

    def finish(self, tokens: dict[str, int]) -> None:
        """Tokens come out, answers end."""
        for job in [job for job in self.running if job.name in tokens]:
            job.computed += tokens[job.name]
            if job.computed == job.prompt + job.made:
                job.made += 1
                job.tokens_at.append(self.times[-1][3] + 50_000)
            if job.made == job.output:
                self.running.remove(job)
                self.gone.append(job.name)

    def line(self, rule: str, text: str, time: int) -> int:
        """A line of the front end's log."""
        lines = self.recording.lines
        lines.append(LogLine(FRONTEND, time, 1000, "INFO", rule, {}, text, 0, len(lines) + 1))
        return len(lines) - 1


def serve(seed: int, *, requests: int = 12, ahead: bool = False, room: int = 10**9, clients: bool = True) -> Service:
    """A run of the engine with what its recorder, its log and (where asked) its callers left."""
    rng = random.Random(seed)
    jobs = [
        Job(
            f"cmpl-r-{i:03}-0-{rng.getrandbits(32):08x}", BEGIN + rng.randrange(400) * MS, rng.randrange(3, 300), length
        )
        for i, length in enumerate(rng.choices(range(1, 40), k=requests))
    ]
    jobs.sort(key=lambda job: (job.arrives, job.name))
    service = Service(rng, ahead, room, jobs)
    for job in jobs:
        for kind, name in (("received", job.name.rsplit("-", 1)[0]), ("added", job.name)):
            line = service.line(f"vllm.{kind}", f"{kind} {name}", job.arrives)
            service.recording.requests.append(RequestFact(FRONTEND, job.arrives, 1000, name, kind, line=line))
    service.run()
    for job in jobs if clients else ():
        rid = job.name.removeprefix("cmpl-").rsplit("-", 2)[0]
        first, last = job.arrives - MS, job.tokens_at[-1] + MS
        service.recording.clients.append(
            ClientRecord(rid, first, last, job.tokens_at, job.prompt, job.output, response_id=f"cmpl-{rid}")
        )
    return service


@pytest.fixture(scope="session")
def engine() -> Callable[..., Service]:
    """Runs the simulated engine."""
    return serve
