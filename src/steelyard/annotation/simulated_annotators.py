"""Simulated annotators: verdicts from a documented noise model, to test methods. They are never evidence.

An annotator who is shown k responses perceives each as its latent quality plus normal noise (Thurstone's model, case
V), drawn anew for every task, so that verdicts on one task agree with each other. A verdict prefers the response that
is perceived as better, unless the two are closer than the tie band; a small share of verdicts cannot be read. Biases
of place and of length are added to the perceived quality. People judge by the triple design, an LLM judges all pairs.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.annotation.answers import HIGHEST_SCORE, LOWEST_SCORE, BucketComparison, TaskAnswer, implied_ranking
from steelyard.core.comparison import circular_triples
from steelyard.core.config import Config
from steelyard.core.errors import ConfigError
from steelyard.core.numerics import Floats, generator
from steelyard.core.types import Judgment, Kind, Record, Verdict

VERDICTS: tuple[Verdict, ...] = ("left", "right", "tie", "none")
_UNPARSED = "simulated: the verdict could not be read"


class Noise(Config, frozen=True):
    """The errors of an annotator in units of latent quality: a good answer has 1, a useless one about 0.

    ``length_bias`` is multiplied by the hyperbolic tangent of the logarithm of the length over the geometric mean of
    those shown.
    """

    spread: float
    """The standard deviation of perceived quality."""
    tie_band: float
    """The difference in perceived quality below which a verdict is a tie."""
    unparsed: float = 0.01
    """The share of unparsed verdicts."""
    position_bias: float = 0.0
    """Advantage in perceived quality of the last answer over the first."""
    length_bias: float = 0.0
    """Advantage in perceived quality of a far longer answer."""


# Calibrated so that the triple design gives the conflict ratio of human annotators (CHEEMS, table 5: 0.1999 and
# 0.2161) and the share of ordered pairs of CheemsBench (table 1: 68 to 73 % of ten), with the qualities of
# `corruptions`.
HUMAN = Noise(spread=0.155, tie_band=0.065)

# Calibrated so that all pairs, judged one by one, give the conflict ratio of GPT-4o (CHEEMS, table 5: 0.2593 and
# 0.3170), with its preference for what is placed later and for what is longer (figure 15).
LLM = Noise(spread=0.27, tie_band=0.03, position_bias=0.12, length_bias=0.25)


def perceive(qualities: Floats, lengths: Floats, noise: Noise, rng: np.random.Generator) -> Floats:
    """Return the perceived qualities of the responses of each task, (task, shown), from qualities and lengths.

    All arrays have this shape; the last axis is the order shown. Lengths are in any unit and above 0.
    """
    num_shown = qualities.shape[-1]
    place = np.linspace(-0.5, 0.5, num_shown)
    logarithm = np.log(lengths)
    relative = np.tanh(logarithm - logarithm.mean(axis=-1, keepdims=True))
    drawn = rng.normal(0.0, noise.spread, qualities.shape)
    return qualities + drawn + noise.position_bias * place + noise.length_bias * relative


def compare(perceived: Floats, noise: Noise, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the verdict of each task on each pair shown, (task, pair), as positions in `VERDICTS`.

    Pairs are (0, 1), (0, 2), …, (1, 2), … of the order shown, and ``left`` is the one shown earlier.
    """
    left, right = np.triu_indices(perceived.shape[-1], 1)
    difference = perceived[..., left] - perceived[..., right]
    verdicts = np.where(np.abs(difference) < noise.tie_band, 2, np.where(difference > 0, 0, 1))
    return np.where(rng.random(verdicts.shape) < noise.unparsed, 3, verdicts)


def answer_triple(shown: Sequence[str], perceived: Floats, noise: Noise) -> TaskAnswer:
    """Return the answer of an annotator who perceives the responses shown like this, one quality each.

    Scores are five times the perceived quality, rounded, from 0 to 5. Among responses of one score each is compared
    with every other: a difference below the tie band to the next better one makes it the same. Nothing contradicts.
    """
    order = sorted(range(len(shown)), key=lambda place: -perceived[place])
    scores = {shown[place]: int(np.clip(np.rint(5 * perceived[place]), LOWEST_SCORE, HIGHEST_SCORE)) for place in order}
    tiers: list[list[str]] = []
    for number, place in enumerate(order):
        before = order[number - 1]
        is_same = number > 0 and scores[shown[before]] == scores[shown[place]]
        if is_same and perceived[before] - perceived[place] < noise.tie_band:
            tiers[-1].append(shown[place])
        else:
            tiers.append([shown[place]])
    tier_of = {response: number for number, tier in enumerate(tiers) for response in tier}
    comparisons = tuple(
        BucketComparison(first=first, second=second, choice="same" if tier_of[first] == tier_of[second] else "better")
        for first, second in combinations([shown[place] for place in order], 2)
        if scores[first] == scores[second]
    )
    entered = TaskAnswer(scores=scores, comparisons=comparisons)
    # As on the page, the ranking is what scores and comparisons imply.
    ranking = implied_ranking(entered, shown)
    assert ranking is not None, "tiers have no circles"
    return msgspec.structs.replace(entered, ranking=ranking)


class Task(NamedTuple):
    """One comparison of one prompt: positions of the responses in the order shown, and the annotator."""

    number: int
    shown: tuple[int, ...]
    annotator: int


def assign_annotators(
    num_prompts: int, num_tasks: int, num_annotators: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Assign an annotator to each task, (prompt, task): none sees a prompt twice, and loads differ by at most one.

    Raises ConfigError for fewer annotators than a prompt has tasks.
    """
    if num_annotators < num_tasks:
        raise ConfigError(
            f"{num_annotators} annotators for {num_tasks} tasks a prompt",
            where="num_annotators",
            allowed=f"{num_tasks} or more: nobody judges a prompt twice",
        )
    loads = np.zeros(num_annotators, np.int64)
    chosen = np.empty((num_prompts, num_tasks), np.int64)
    for row in chosen:
        # The least loaded annotators, ties of load in random order: loads then never differ by more than one.
        row[:] = np.lexsort((rng.random(num_annotators), loads))[:num_tasks]
        loads[row] += 1
        # Which of them judges which task is random too.
        rng.shuffle(row)
    return chosen


def plan_tasks(num_responses: int, annotators: NDArray[np.int64], rng: np.random.Generator) -> tuple[Task, ...]:
    """Return the tasks of one prompt for a row of `assign_annotators`; each triple is shown in its own random order."""
    return tuple(
        Task(number, tuple(triple[place] for place in rng.permutation(3)), int(annotator))
        for number, (triple, annotator) in enumerate(
            zip(circular_triples(num_responses), annotators, strict=True), start=1
        )
    )


class Candidates(NamedTuple):
    """The responses to one prompt with their latent qualities and lengths in code points, above 0."""

    ids: tuple[str, ...]
    qualities: tuple[float, ...]
    lengths: tuple[int, ...]


def human_judgments(
    prompts: Sequence[Candidates], noise: Noise, *, num_annotators: int, seed: int
) -> tuple[tuple[Judgment, ...], ...]:
    """Return for each prompt three verdicts on each of its circular triples, judged by as many different people.

    Raises ConfigError for a prompt with fewer than three responses, or more responses than there are annotators.
    """
    rng = generator(seed, "human annotators")
    # A row of annotators for each prompt, one a task: the circular design has as many tasks as responses.
    sizes = np.array([len(prompt.ids) for prompt in prompts])
    rows: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * len(sizes)
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        for member, row in zip(members, assign_annotators(len(members), int(size), num_annotators, rng), strict=True):
            rows[member] = row
    return tuple(
        _judge_tasks(prompt, plan_tasks(len(prompt.ids), row, rng), "human", noise, rng)
        for prompt, row in zip(prompts, rows, strict=True)
    )


def llm_judgments(prompts: Sequence[Candidates], noise: Noise, *, seed: int) -> tuple[tuple[Judgment, ...], ...]:
    """Return for each prompt one verdict on each pair, with pairs and places in random order (CHEEMS, section 4.2)."""
    rng = generator(seed, "llm annotator")
    judgments: list[tuple[Judgment, ...]] = []
    for prompt in prompts:
        pairs = rng.permutation(np.array(list(combinations(range(len(prompt.ids)), 2)), np.int64))
        pairs = rng.permuted(pairs, axis=1)
        tasks = [Task(number, (first, second), 0) for number, (first, second) in enumerate(pairs.tolist(), start=1)]
        judgments.append(_judge_tasks(prompt, tasks, "llm", noise, rng))
    return tuple(judgments)


def _judge_tasks(
    prompt: Candidates, tasks: Sequence[Task], kind: Kind, noise: Noise, rng: np.random.Generator
) -> tuple[Judgment, ...]:
    """Return a judgment for every pair of every task. All tasks must show equally many responses."""
    places = np.array([task.shown for task in tasks])
    qualities, lengths = np.array(prompt.qualities), np.array(prompt.lengths, np.float64)
    verdicts = compare(perceive(qualities[places], lengths[places], noise, rng), noise, rng)
    return tuple(
        Judgment(
            left=shown[left],
            right=shown[right],
            verdict=VERDICTS[code],
            judge=f"simulated-{kind}-{task.annotator + 1}",
            kind=kind,
            id=f"{kind}-{task.number}:{left + 1}{right + 1}",
            task=f"{kind}-{task.number}",
            shown=shown,
            reason=_UNPARSED if VERDICTS[code] == "none" else None,
        )
        for task, row in zip(tasks, verdicts.tolist(), strict=True)
        for shown in (tuple(prompt.ids[place] for place in task.shown),)
        for (left, right), code in zip(combinations(range(len(shown)), 2), row, strict=True)
    )


class SimulationSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``simulate``: numbers of prompts and responses by part, of judgments by kind."""

    simulated: bool
    num_prompts: dict[str, int]
    num_judgments: dict[str, int]
    num_responses: dict[str, dict[str, int]]
    held_out_kind: str | None
