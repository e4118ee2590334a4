"""One person's ranking as judgments on its pairs, and judgments as the rankings that say them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.core.types import Case, Judgment, Kind, Verdict
from steelyard.plugins.formats._parts import UNKNOWN


class Voice(NamedTuple):
    """Who ranked, and which question: what the judgments of one ranking share."""

    judge: str
    kind: Kind
    task: str | None = None


class Ranked(NamedTuple):
    """One voice's ranking of some responses: tiers, best first."""

    voice: Voice
    tiers: tuple[tuple[str, ...], ...]


def judgments_of(ranked: Ranked) -> Iterator[Judgment]:
    """A judgment on every two responses, the higher one left; equal ranks are ties."""
    placed = [(place, name) for place, tier in enumerate(ranked.tiers) for name in tier]
    for (high, left), (low, right) in combinations(placed, 2):
        verdict: Verdict = "tie" if high == low else "left"
        yield Judgment(left=left, right=right, verdict=verdict, **ranked.voice._asdict())


def rankings_of(judgments: Iterable[Judgment], lost: Counter[str]) -> list[Ranked]:
    """The judgments as rankings: one a voice where all its pairs are judged once and agree, else one a judgment.

    Judgments without a verdict have no ranking: they are counted.
    """
    by_voice: defaultdict[Voice, list[Judgment]] = defaultdict(list)
    for one in judgments:
        if one.verdict == "none":
            lost["judgments without a verdict"] += 1
        else:
            by_voice[Voice(one.judge, one.kind, one.task)].append(one)
    return [Ranked(voice, tiers) for voice, said in by_voice.items() for tiers in _rankings(said)]


def without_tasks(case: Case) -> Case:
    """The case without the tasks of its evidence, for formats that write them as their questions: they are not lost."""
    return replace(
        case,
        judgments=tuple(replace(one, task=None) for one in case.judgments),
        ratings=tuple(replace(one, task=None) for one in case.ratings),
    )


def without_people(case: Case) -> Case:
    """The case without the names of the people who judged, for formats whose judges are people: they are not lost."""
    judgments = (replace(one, judge=UNKNOWN) if one.kind == "human" else one for one in case.judgments)
    return replace(case, judgments=tuple(judgments))


def _rankings(judgments: Sequence[Judgment]) -> list[tuple[tuple[str, ...], ...]]:
    whole = _tiers(judgments)
    if whole is not None:
        return [whole]
    return [tiers for one in judgments if (tiers := _tiers([one])) is not None]


def _tiers(judgments: Sequence[Judgment]) -> tuple[tuple[str, ...], ...] | None:
    """The one ranking that says exactly these judgments; null where there is none."""
    names = dict.fromkeys(name for one in judgments for name in (one.left, one.right))
    wins = Counter(dict.fromkeys(names, 0))
    verdicts: dict[frozenset[str], str | None] = {}
    for one in judgments:
        winner = {"left": one.left, "right": one.right}.get(one.verdict)
        verdicts[frozenset((one.left, one.right))] = winner
        wins.update([winner] if winner else [])
    if len(judgments) != len(verdicts) or len(verdicts) != len(names) * (len(names) - 1) // 2:
        return None
    # Responses that are equal have won against the same ones, so as many times: tiers go by the number of wins.
    for pair, winner in verdicts.items():
        first, second = pair
        better = first if wins[first] > wins[second] else second if wins[second] > wins[first] else None
        if better != winner:
            return None
    by_wins: defaultdict[int, list[str]] = defaultdict(list)
    for name in names:
        by_wins[wins[name]].append(name)
    return tuple(tuple(by_wins[number]) for number in sorted(by_wins, reverse=True))
