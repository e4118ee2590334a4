"""Coverage of the intervals of the measures beside accuracy, simulated through the functions that `evaluate` calls.

Run: PYTHONPATH=src python tests/field/test_measure_coverage.py [--replications 1000] [--prompts 20]
(prints the lines of the second table of coverage in docs/measures.md)

A population of 4,000 prompts is made once for each setting, in categories that differ in difficulty. A prompt has five
responses in four tiers, rewards whose spread differs by prompt and which length raises, three people's judgments of
three of its pairs, and one to six judgments of an LLM that prefers the earlier and the longer answer. Samples are
drawn from it with replacement, equally many of each category, so that the truth is the population's own value.
"""

import argparse
import sys
from collections import Counter, defaultdict
from functools import cache
from itertools import combinations, product
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from steelyard.core.types import Case, Judgment, Prompt, Response
from steelyard.evaluation.bench_pairs import Ranked
from steelyard.evaluation.measure import GroupedMeans
from steelyard.evaluation.measures.calibration import Margins, calibration
from steelyard.evaluation.measures.human_ceiling import human_ceiling
from steelyard.evaluation.measures.kendall_tau import kendall
from steelyard.evaluation.measures.length import PairLengths, length_summary
from steelyard.evaluation.measures.regret import last_known, regret
from steelyard.evaluation.measures.rewards import Rewards, reward_distributions
from steelyard.evaluation.measures.top_1 import first_choice
from steelyard.ranking.annotation_features import length_columns, position_columns
from steelyard.ranking.judge_quality import GRAPH_WIDTH, RATER, RATER_WIDTH
from steelyard.ranking.judge_summary import QualityDraws, judge_summary
from steelyard.ranking.judgment_table import (
    Only,
    judgment_table,
)
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.intervals import CORRELATION, SHARE, Estimate, Scale
from steelyard.statistics.prompt_means import mean_of, summarise
from steelyard.statistics.unit_bootstrap import Entries, Tally

NUM_RESAMPLES, POPULATION, FEWEST_PERCENT = 1000, 4000, 93.0
TIERS = np.array([0, 1, 2, 2, 3])
PAIRS = np.array([pair for pair in combinations(range(5), 2) if TIERS[pair[0]] != TIERS[pair[1]]])
ASKED = list(combinations(range(3), 2))
MOST_ASKED = 6
JUDGE = ("judge", "j", "llm")
UNKNOWN = Estimate(None, None, None, 0)
NOTHING = GroupedMeans(macro=UNKNOWN, micro=UNKNOWN, by_category={}, by_language={})


class Setting(NamedTuple):
    """One column of the table. ``ability``: how far a better tier raises a reward, in units of the noise."""

    num_prompts: int
    num_categories: int
    ability: float


class Sample(NamedTuple):
    """Prompts, one row each: rewards and lengths of the five responses, people's judgments, and the LLM's choices.

    ``verdicts``: whether the LLM prefers the earlier, and the longer, shape (prompt, judgment, 2); -1 is not asked.
    """

    category: np.ndarray
    score: np.ndarray
    length: np.ndarray
    cases: tuple
    verdicts: np.ndarray

    def at(self, rows):
        """The sample of these rows."""
        own = tuple(self.cases[row] for row in rows.tolist())
        return Sample(self.category[rows], self.score[rows], self.length[rows], own, self.verdicts[rows])


def settings():
    """Every column of the table."""
    return [Setting(*own) for own in product((20, 60, 200), (1,), (0.5, 2.0))] + [
        Setting(size, 10, 2.0) for size in (20, 60, 200)
    ]


@cache
def population(num_categories, ability):
    """All prompts that there are."""
    rng = np.random.default_rng([num_categories, int(10 * ability)])
    category = np.arange(POPULATION) % num_categories
    ease = rng.uniform(0.6, 1.4, num_categories)[category] * rng.lognormal(0, 0.4, POPULATION)
    length = np.exp(rng.normal(5, 0.7, (POPULATION, 5))).astype(np.int64) + 1
    noise = rng.gumbel(size=(POPULATION, 5))
    score = rng.normal(size=(POPULATION, 1)) + (ability * ease)[:, None] * -TIERS + 0.4 * np.log(length / 150) + noise
    disagreement = rng.beta(1.2, 4, POPULATION)
    cases = tuple(judged_case(row, rng.random((3, len(ASKED))) < own) for row, own in enumerate(disagreement))
    preference = np.stack([rng.beta(6, 5, POPULATION), rng.beta(6, 3, POPULATION)], axis=-1)
    verdicts = (rng.random((POPULATION, MOST_ASKED, 2)) < preference[:, None]).astype(np.int64)
    verdicts[np.arange(MOST_ASKED) >= rng.integers(1, MOST_ASKED + 1, POPULATION)[:, None]] = -1
    return Sample(category, score, length, cases, verdicts)


def judged_case(row, is_against):
    """Three people's judgments of the pairs of the first three responses, some of them against the ranking."""
    judgments = tuple(
        Judgment(
            left=str(one),
            right=str(other),
            verdict="right" if is_against[person, place] else "left",
            judge=f"a{person}",
            kind="human",
        )
        for person in range(3)
        for place, (one, other) in enumerate(ASKED)
    )
    responses = tuple(Response(id=str(place), text="x") for place in range(5))
    return Case(prompt=Prompt(id=f"p{row}", messages=()), responses=responses, judgments=judgments)


def measured(sample, *, num_resamples, seed):
    """Every estimate of the sample by its path."""
    size = len(sample.category)
    labels = [Label(f"p{row}", Cell(f"c{own:02}")) for row, own in enumerate(sample.category.tolist())]
    blocks = draw_blocks(labels, num_resamples=num_resamples, seed=seed)
    ranked = Ranked(np.repeat(np.arange(size), 5), np.tile(TIERS, size), sample.score.ravel())
    lost = regret(ranked.prompt, ranked.score, ranked.tier.astype(np.float64), size)
    scale = Scale(0.0, lost.largest)
    prompt_means = {
        "tau-b": mean_of(kendall(ranked, size).tau, CORRELATION),
        "top-1": mean_of(first_choice(ranked, size).half, SHARE),
        "regret of 2": mean_of(lost.model[:, 0], scale),
        "regret of all": mean_of(last_known(lost.model), scale),
    }
    better, worse = sample.score[:, PAIRS[:, 0]], sample.score[:, PAIRS[:, 1]]
    of_pair = np.repeat(np.arange(size), len(PAIRS))
    lengths = [sample.length[:, PAIRS[:, side]].ravel() for side in (0, 1)]
    found = {
        "": summarise(blocks, prompt_means, with_groups=False),
        "length": length_summary(blocks, PairLengths(of_pair, (better > worse).ravel(), *lengths), 1.1, NOTHING),
        "calibration": calibration(blocks, Margins(of_pair, (better - worse).ravel()), seed=seed),
        "rewards": reward_distributions(blocks, Rewards(ranked.prompt, ranked.score, {})).overall,
        "ceiling": human_ceiling(
            blocks, judgment_table(sample.cases, Only(kind=("human",))), lambda held: outcomes(sample.score, held)
        ),
        "judge": judge_report(sample.verdicts, num_resamples=num_resamples, seed=seed),
    }
    return dict(estimates(msgspec.to_builtins(found)))


def outcomes(score, held_out):
    """What the rewards make of people's pairs."""
    return score[held_out.case, held_out.better] - score[held_out.case, held_out.worse]


def judge_report(verdicts, *, num_resamples, seed):
    """How often the LLM prefers the earlier and the longer answer, by the counts of `resolve`."""
    unit, place = np.nonzero(verdicts[..., 0] >= 0)
    prefers_earlier, prefers_longer = verdicts[unit, place].T
    earlier = position_columns(1 - prefers_earlier, prefers_earlier, np.full_like(unit, 2))
    longer = length_columns(100 + 100 * prefers_longer, 200 - 100 * prefers_longer)
    raters, graphs, none = Tally(RATER_WIDTH), Tally(GRAPH_WIDTH), Tally(1)
    raters.add(
        Entries(
            (JUDGE,),
            np.tile(unit, 2),
            np.concatenate([RATER["position"].start + earlier, RATER["length"].start + longer]),
        )
    )
    graphs.add(Entries((("kind", "llm"),), unit, np.full_like(unit, 2)))
    drawn = [own.draw(seed=seed, num_resamples=num_resamples) for own in (raters, graphs)]
    summary = judge_summary(QualityDraws(*drawn, none.draw(seed=seed), none.draw(seed=seed))).by_judge["j"]
    quality = msgspec.to_builtins(summary)
    return {name: quality[name] for name in ("position", "length")}


def estimates(tree, path=""):
    """Every value with its interval by its path; curves and groups are left out."""
    for name, own in tree.items():
        if not isinstance(own, dict) or name.startswith("by_"):
            continue
        here = f"{path} {name}".strip()
        if "value" in own:
            yield here, (own["value"], own["low"], own["high"])
        else:
            yield from estimates(own, here)


def coverage(setting, num_replications):
    """By path: in how many of 100 samples with an interval it holds the truth, and in how many there is none."""
    everything = population(setting.num_categories, setting.ability)
    truth = {path: own[0] for path, own in measured(everything, num_resamples=2, seed=0).items()}
    rng = np.random.default_rng([7, *(int(10 * value) for value in setting)])
    members = [np.flatnonzero(everything.category == own) for own in range(setting.num_categories)]
    each = setting.num_prompts // setting.num_categories
    hits, absent = defaultdict(list), Counter()
    for seed in range(num_replications):
        rows = np.concatenate([rng.choice(own, each) for own in members])
        for path, (_, low, high) in measured(everything.at(rows), num_resamples=NUM_RESAMPLES, seed=seed).items():
            if low is None:
                absent[path] += 1
            elif truth[path] is not None:
                hits[path].append(low - 1e-12 <= truth[path] <= high + 1e-12)
    return {
        path: (100 * float(np.mean(hits[path])) if hits[path] else None, 100 * absent[path] / num_replications)
        for path in truth
    }


@pytest.mark.field
@pytest.mark.parametrize("setting", settings(), ids=str)
def test_every_measure_holds_the_truth(setting):
    num_replications = 1000
    too_low = {
        path: held
        for path, (held, _) in coverage(setting, num_replications).items()
        if held is not None and held < FEWEST_PERCENT - 2 * 0.8
    }
    assert not too_low


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--replications", type=int, default=1000)
    options.add_argument("--prompts", type=int, help="only settings of so many prompts")
    options.add_argument("--categories", type=int, help="only settings of so many categories")
    asked = options.parse_args()
    for setting in settings():
        if asked.prompts in (None, setting.num_prompts) and asked.categories in (None, setting.num_categories):
            for path, (held, absent) in coverage(setting, asked.replications).items():
                told = "-" if held is None else f"{held:.1f}"
                sys.stdout.write(f"| {' | '.join(map(str, setting))} | {path} | {told} | {absent:.1f} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
