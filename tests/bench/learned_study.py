"""What `teller learn` is worth: baselines of the healthy windows of one block, held against the episodes of the others.

    python tests/bench/learned_study.py [--lives FOLDER] [--tier N] [--name LIFE]...

Of each life of the training side, each block's healthy windows are learned from as `teller learn` does, and the episodes of its
other blocks are judged twice: against themselves, and against what was learned. Beside the usual episodes, in which most windows
are healthy, stand those of struck windows alone: all of such a capture is slow, and nothing in it says so.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from teller_core.context.linking import step_linked  # noqa: E402 - the checkout is put on the path first
from teller_core.data.capture import Capture  # noqa: E402
from teller_core.data.learned import Learned  # noqa: E402
from teller_core.judge.assess import assess  # noqa: E402
from teller_core.judge.diagnose import judge  # noqa: E402
from teller_core.judge.learning import Healthy, claims_on, folds, learned_from, with_claims  # noqa: E402
from teller_core.judge.prepare import Case, prepare  # noqa: E402
from teller_core.judge.reschedule.findings import LEFT  # noqa: E402
from teller_core.lab.benchmark import episodes as cut  # noqa: E402
from teller_core.lab.benchmark.pack import Packed, capture_of, lives  # noqa: E402
from teller_core.lab.evaluation.episode import HEALTHY, NOT_JUDGED, Episode  # noqa: E402
from teller_core.lab.evaluation.loading import episode_of  # noqa: E402

WAYS = ("against itself", "against what was learned")


@dataclass
class Tally:
    """How many requests were struck, healthy and hard negatives, and what was said of them."""

    struck: int = 0
    first: int = 0
    three: int = 0
    healthy: int = 0
    claimed: int = 0
    hard: int = 0
    hard_claimed: int = 0
    verdicts: Counter[str] = field(default_factory=Counter[str])

    def row(self) -> str:
        """As cells of a table."""
        shares = (
            (self.first, self.struck),
            (self.three, self.struck),
            (self.claimed, self.healthy),
            (self.hard_claimed, self.hard),
        )
        cells = [f"{part / whole:.3f}" if whole else "-" for part, whole in shares]
        calm = sum(self.verdicts.values())
        told = [f"{self.verdicts[name] / calm:.3f}" if calm else "-" for name in ("typical_here", "normal")]
        return f"{self.struck} | {self.healthy} | {self.hard} | " + " | ".join([*cells, *told])


def case_of(capture: Capture, learned: Learned | None) -> Case:
    """The capture as an import has it, but for what new batches would save."""
    link = partial(step_linked, capture)
    return replace(prepare(capture, assess(capture, learned)), link=link, measured={LEFT: 0})


def taught(episode: Episode) -> Learned:
    """What the healthy windows of a block teach."""
    capture = episode.seen.capture
    several = [Healthy(capture, assess(capture))]
    plain = learned_from(several, "block", {}, "2000-01-01")
    return with_claims(plain, [claims_on(case_of(capture, other), mine) for other, mine in folds(several, 0, plain)])


def judged(episode: Episode, learned: Learned | None, tally: Tally) -> None:
    """Count what is said of the requests of an episode."""
    case, labels = case_of(episode.seen.capture, learned), episode.labels
    for request, truth in enumerate(labels.request):
        if truth == NOT_JUDGED:
            continue
        said = judge(case, request)
        named = [finding.cause for finding in said.findings]
        if truth != HEALTHY:
            tally.struck += 1
            tally.first += named[:1] == [truth]
            tally.three += truth in named[:3]
        elif labels.hard[request]:
            tally.hard += 1
            tally.hard_claimed += bool(named)
        else:
            tally.healthy += 1
            tally.claimed += bool(named)
            tally.verdicts[said.verdict] += 1


def studied(life: Packed, tier: int) -> Iterator[tuple[str, str, Tally]]:
    """(composition, way, what was said) of one life."""
    capture = capture_of(life, tier)
    known = {each.block: taught(episode_of(life, each)) for each in cut.composed(life, capture, tier, "healthy")}
    given = {
        "usual episodes": cut.episodes(life, capture, tier),
        "struck windows alone": cut.composed(life, capture, tier, "struck"),
    }
    for what, several in given.items():
        for each in several:
            others = [learned for block, learned in known.items() if block != each.block]
            if not others:
                continue
            for way, learned in zip(WAYS, (None, others[0]), strict=True):
                tally = Tally()
                judged(episode_of(life, each), learned, tally)
                yield what, way, tally


def added(one: Tally, other: Tally) -> Tally:
    """Both together."""
    numbers = {name: getattr(one, name) + getattr(other, name) for name in vars(one)}
    return Tally(**numbers)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lives", type=Path, default=ROOT / "tests" / "lab")
    parser.add_argument("--tier", type=int, default=4)
    parser.add_argument("--name", action="append", default=[])
    given = parser.parse_args(arguments)
    found = [life for life in lives(given.lives) if life.about["side"] == "train"]
    total: dict[tuple[str, str], Tally] = {}
    for life in (life for life in found if not given.name or life.name in given.name):
        for what, way, tally in studied(life, given.tier):
            total[what, way] = added(total.get((what, way), Tally()), tally)
        print(f"{life.name} is judged", file=sys.stderr, flush=True)
    heads = ("struck", "healthy", "hard", "top-1", "top-3", "healthy claimed", "hard claimed", "typical here", "normal")
    print(f"| T{given.tier} | judged | {' | '.join(heads)} |")
    print("|" + "---|" * (len(heads) + 2))
    for (what, way), tally in total.items():
        print(f"| {what} | {way} | {tally.row()} |")


if __name__ == "__main__":
    main()
