"""Three raters a segment on ten translations (WMT 2023, MQM): their verdicts with ties, and rater models side by side.

    python docs/howto/wmt_mqm.py judge zhen.jsonl zhen_judged.jsonl
    python docs/howto/wmt_mqm.py means zhen.jsonl zhen_means.jsonl
    python docs/howto/wmt_mqm.py compare zhen.jsonl
    python docs/howto/wmt_mqm.py tiers FOLDER...
    python docs/howto/wmt_mqm.py levels zhen.jsonl zh-en
    python docs/howto/wmt_mqm.py omissions zhen.jsonl

The case file is what `steelyard convert` makes of the published table: a rating for each rater of each translation.
"""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import typer
from rater_models import (
    ALGORITHM_1,
    EVERYONE,
    MODELS,
    AnswerKey,
    Model,
    RaterModelScore,
    by_tiers,
    compare_on_held_out,
    compare_with_key,
)

from steelyard.core.text import num_characters
from steelyard.core.types import Case, Judgment, Scores
from steelyard.curation.supervision import KEPT, cut_cycles
from steelyard.evaluation.best_of_n import draw_curve, selected_value
from steelyard.io.cases import read_cases, write_cases
from steelyard.ranking.dawid_skene import Pairs, Votes
from steelyard.ranking.judgment_table import TIE, Verdicts
from steelyard.statistics.agreement import FIRST, SECOND, TIED
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.unit_bootstrap import selection_shares
from steelyard.translation.grading import LEVELS, GradingConfig, graded_pairs

APP = typer.Typer(help=__doc__, add_completion=False)

DIGITS = 9
PENALTY = {"major": 5.0, "minor": 1.0}
OF_MAJORITY, WITHOUT_TIES = "algorithm_1_of_majority", "algorithm_1_without_ties"


class Ratings(NamedTuple):
    """One entry a number that a rater gave: to which prompt's response (by positions), and how much; more is better."""

    prompt: np.ndarray
    response: np.ndarray
    rater: np.ndarray
    value: np.ndarray

    def where(self, chosen: np.ndarray) -> "Ratings":
        """The chosen entries, by position or by truth."""
        return Ratings(self.prompt[chosen], self.response[chosen], self.rater[chosen], self.value[chosen])


def by_mean_rating(ratings: Ratings, votes: Votes, queries: Pairs) -> np.ndarray:
    """The response with the higher mean rating, surer the larger the difference; NaN where one of the two has none.

    Only ratings by raters who have votes count, so that a rater whose votes are held out is held out here too. The
    probability is the logistic function of the difference in the ratings' own unit: its order means something, its
    size does not.
    """
    difference = mean_differences(ratings.where(np.isin(ratings.rater, votes.rater)), queries)
    first = 0.5 * (1.0 + np.tanh(difference / 2))
    return (
        np.stack([first, 1 - first, np.zeros(len(first))], axis=1) * np.where(np.isnan(difference), np.nan, 1)[:, None]
    )


def votes_of_ratings(ratings: Ratings) -> Votes:
    """What each rater's numbers say of every two responses of a prompt that the rater gave one each; equal is a tie."""
    ordered = ratings.where(np.lexsort((ratings.response, ratings.rater, ratings.prompt)))
    prompt, response, rater, value = ordered
    blocks: list[tuple[np.ndarray, ...]] = []
    for shift in range(1, len(prompt)):
        same = (prompt[shift:] == prompt[:-shift]) & (rater[shift:] == rater[:-shift])
        if not same.any():
            break
        at = np.flatnonzero(same)
        gain = np.round(value[at] - value[at + shift], DIGITS)
        label = np.select([gain > 0, gain < 0], [FIRST, SECOND], TIED)
        blocks.append((prompt[at], response[at], response[at + shift], rater[at], label))
    columns = (
        [np.concatenate(column) for column in zip(*blocks, strict=True)] if blocks else [np.zeros(0, np.int64)] * 5
    )
    return Votes(Pairs(*columns[:3]), columns[3], columns[4])


def key_of_means(ratings: Ratings, pairs: Pairs) -> AnswerKey:
    """The distinct pairs whose mean ratings over all raters differ, and which of the two is higher."""
    distinct = Pairs(*np.unique(np.stack(pairs), axis=1))
    difference = mean_differences(ratings, distinct)
    differs = np.abs(np.nan_to_num(difference)) > 0
    return AnswerKey(Pairs(*(column[differs] for column in distinct)), np.where(difference[differs] > 0, FIRST, SECOND))


def mean_differences(ratings: Ratings, pairs: Pairs) -> np.ndarray:
    """The mean rating of the first minus that of the second; NaN where one has none."""
    width = int(max(ratings.response.max(initial=0), pairs.second.max(initial=0))) + 1
    size = (int(max(ratings.prompt.max(initial=-1), pairs.prompt.max(initial=-1))) + 1) * width
    place = ratings.prompt * width + ratings.response
    number = np.bincount(place, minlength=size)
    mean = np.bincount(place, ratings.value, size) / np.where(number > 0, number, np.nan)
    one, other = (pairs.prompt * width + side for side in (pairs.first, pairs.second))
    return np.round(mean[one] - mean[other], DIGITS)


def judged(case: Case) -> Case:
    """The case with a verdict for each rater and every two translations; equal numbers are a tie."""
    values = {(rating.rater, rating.response): rating.value for rating in case.ratings}
    judgments = [
        Judgment(
            left=one.id,
            right=other.id,
            verdict=verdict(values[rater, one.id] - values[rater, other.id]),
            judge=rater,
            kind="human",
        )
        for rater in sorted({rating.rater for rating in case.ratings})
        for one, other in combinations(case.responses, 2)
        if (rater, one.id) in values and (rater, other.id) in values
    ]
    return msgspec.structs.replace(case, judgments=tuple(judgments))


def verdict(gain: float) -> str:
    """Which of two numbers is higher; sums of tenths are compared to nine digits."""
    gain = round(gain, DIGITS)
    return "left" if gain > 0 else "right" if gain < 0 else "tie"


def means(case: Case) -> Scores:
    """The mean of the raters' numbers as the score of each translation."""
    values: dict[str, list[float]] = {response.id: [] for response in case.responses}
    for rating in case.ratings:
        values[rating.response].append(rating.value)
    scores = {name: sum(own) / len(own) if own else None for name, own in values.items()}
    return Scores(prompt=case.prompt.id, language=case.prompt.language, scores=scores)


def ratings_of(cases: list[Case]) -> tuple[Ratings, list[str]]:
    """All ratings as columns, and the raters' names."""
    names = sorted({rating.rater for case in cases for rating in case.ratings})
    number = {name: index for index, name in enumerate(names)}
    rows = []
    for prompt, case in enumerate(cases):
        place = {response.id: index for index, response in enumerate(case.responses)}
        rows += [(prompt, place[own.response], number[own.rater], own.value) for own in case.ratings]
    prompt, response, rater, value = (np.array(column) for column in zip(*rows, strict=True))
    return Ratings(prompt, response, rater, value), names


def without_ties(model: Model) -> Model:
    """The same model on strict verdicts alone."""

    def answers(votes: Votes, asked: Pairs) -> np.ndarray:
        strict = votes.label != 2
        pairs = Pairs(*(column[strict] for column in votes.pairs))
        return model(Votes(pairs, votes.rater[strict], votes.label[strict]), asked)

    return answers


def cycles_cut_by_mean(ratings: Ratings) -> Model:
    """Strict verdicts; in each cycle those go that the mean rating of the same raters supports least."""

    def answers(votes: Votes, asked: Pairs) -> np.ndarray:
        pairs = votes.pairs
        verdicts = Verdicts(pairs.prompt, pairs.first, pairs.second, votes.label)
        mean = by_mean_rating(ratings, votes, pairs)[:, 0] * 2 - 1
        margin = np.where(votes.label == TIE, np.nan, np.where(votes.label == 0, mean, -mean))
        sizes = np.full(int(max(pairs.prompt.max(), asked.prompt.max())) + 1, int(asked.second.max()) + 1)
        kept = cut_cycles(verdicts, margin, sizes) == KEPT
        chosen = Votes(Pairs(*(column[kept] for column in pairs)), votes.rater[kept], votes.label[kept])
        return by_tiers(chosen, asked)

    return without_ties(answers)


def models_of(ratings: Ratings) -> dict[str, Model]:
    """What is compared: the library's models, and three that this data allows."""
    return {
        **MODELS,
        WITHOUT_TIES: without_ties(by_tiers),
        "cycles_cut_by_mean": cycles_cut_by_mean(ratings),
        "mean_rating": lambda votes, asked: by_mean_rating(ratings, votes, asked),
    }


@APP.command()
def compare(path: Path) -> None:
    """Print both comparisons on what every model orders, then on what those order that do not collapse."""
    ratings, names = ratings_of(list(read_cases(path)))
    votes = votes_of_ratings(ratings)
    key = key_of_means(ratings, votes.pairs)
    models = models_of(ratings)
    # What the mean of the same raters decides agrees with it by construction.
    without_mean = {name: model for name, model in models.items() if "mean" not in name}
    shown("the mean of all raters", compare_with_key(votes, key, seed=0, models=without_mean))
    wider = {name: model for name, model in without_mean.items() if name != ALGORITHM_1}
    shown("the mean of all raters", compare_with_key(votes, key, seed=0, models=wider, baseline=OF_MAJORITY))
    shown("a rater held out", compare_on_held_out(votes, names, seed=0, models=models))
    wider = {name: model for name, model in models.items() if name not in (ALGORITHM_1, OF_MAJORITY)}
    shown("a rater held out", compare_on_held_out(votes, names, seed=0, models=wider, baseline=WITHOUT_TIES))


def shown(title: str, found: tuple[RaterModelScore, ...]) -> None:
    """One comparison as a table, over all raters together."""
    found = tuple(one for one in found if one.rater == EVERYONE)
    first = found[0]
    print(f"\n{title}: {first.accuracy.n:,} pairs, the surest {first.equal_coverage:.1%} of each model")
    print(f"{'':28} {'coverage':>8}  {'right there':>11}  {'right at equal coverage':24} difference")
    for one in found:
        ends = [f"{own.value:.3f} [{own.low:.3f}, {own.high:.3f}]" for own in (one.accuracy, one.gain)]
        print(f"{one.model:28} {one.coverage:8.1%}  {one.accuracy_of_all.value:11.3f}  {ends[0]:24} {ends[1]}")


@APP.command()
def tiers(folders: list[Path]) -> None:
    """Print how many tiers the rankings of resolved folders have, and the agreement of their raters."""
    for folder in folders:
        cases = [case for case in read_cases(folder / "cases.jsonl") if case.ranking]
        number = Counter(len(case.ranking or ()) for case in cases)
        summary = json.loads((folder / "run.json").read_text(encoding="utf-8"))["summary"]
        print(f"{folder}: one tier {number[1] / len(cases):.1%} of {len(cases)}; tiers {dict(sorted(number.items()))}")
        kappas = [one["kappa"]["value"] for one in summary["agreement"]["judges"]]
        alpha = summary["agreement"]["alpha"]["all"]
        print(f"  kappa {min(kappas):.3f} to {max(kappas):.3f}, median {np.median(kappas):.3f}, {len(kappas)} pairs")
        print(f"  alpha {alpha['value']:.3f} [{alpha['low']:.3f}, {alpha['high']:.3f}]")


@APP.command()
def levels(path: Path, direction: str) -> None:
    """Print how often a rater agrees with EASY and HARD pairs made from the other raters of the source alone."""
    cases = list(read_cases(path))
    raters = [sorted({rating.rater for rating in case.ratings}) for case in cases]
    number = {case.prompt.id: unit for unit, case in enumerate(cases)}
    rows: list[tuple[int, str, float]] = []
    for place in range(max(map(len, raters))):
        held_out = {case.prompt.id: own[place % len(own)] for case, own in zip(cases, raters, strict=True)}
        others = (without(case, held_out[case.prompt.id]) for case in cases)
        pairs, _ = graded_pairs(others, direction, GradingConfig(num_pairs="all"))
        for pair in pairs:
            unit = number[(pair.prompt.meta or {})["translation_source"]]
            better, worse = (name for tier in pair.ranking or () for name in tier)
            rater = held_out[cases[unit].prompt.id]
            values = {one.response: one.value for one in cases[unit].ratings if one.rater == rater}
            if better in values and worse in values:
                level = (pair.prompt.subset or "").partition("_")[0]
                rows.append((unit, level, round(values[better] - values[worse], DIGITS)))
    unit, level, gain = (np.array(column) for column in zip(*rows, strict=True))
    selected = np.stack([level == name for name in LEVELS], axis=1)
    right, tied = gain > 0, gain == 0
    for title, chosen, outcome in (
        ("agrees", selected, right),
        ("sees no difference", selected, tied),
        ("agrees where it sees one", selected & ~tied[:, None], right),
    ):
        shares = selection_shares(unit, chosen.astype(float), outcome.astype(float), seed=0)
        values = [*(shares.of(level) for level in range(2)), shares.minus(0, 1)]
        texts = [f"{own.value:.3f} [{own.low:.3f}, {own.high:.3f}] of {own.n:.0f}" for own in values]
        print(f"{title:26} easy {texts[0]}  hard {texts[1]}  difference {texts[2].partition(' of')[0]}")


def without(case: Case, rater: str) -> Case:
    """The case without the ratings of one rater."""
    return msgspec.structs.replace(case, ratings=tuple(own for own in case.ratings if own.rater != rater))


@APP.command()
def omissions(path: Path) -> None:
    """Print how length is related to omissions and to all other errors, and the penalties of the longest of N."""
    cases = list(read_cases(path))
    length, everything, omitted = penalties_of(cases)
    blocks = draw_blocks([Label(case.prompt.id, Cell("all")) for case in cases], num_resamples=2000, seed=0)
    relative = length / length.mean(axis=1, keepdims=True) - 1
    budgets = (1, 2, 3, 5, 8, 10)
    for name, penalty in (("all errors", everything), ("omissions", omitted), ("other errors", everything - omitted)):
        apart = penalty - penalty.mean(axis=1, keepdims=True)
        sums = np.stack([(relative * apart).sum(1), (relative**2).sum(1), (apart**2).sum(1)], axis=1)
        point, drawn = draw_curve(blocks, sums)
        both, others = (part[..., 0] / np.sqrt(part[..., 1] * part[..., 2]) for part in (point, drawn))
        curve = draw_curve(blocks, selected_value(length, penalty, budgets))
        lost = curve.resampled - curve.resampled[:, :1]
        print(f"{name}: correlation with length within a segment {spread(both, others)}")
        for column, budget in enumerate(budgets):
            change = spread(curve.point[column] - curve.point[0], lost[:, column])
            print(f"  longest of {budget}: {spread(curve.point[column], curve.resampled[:, column])}, change {change}")


def penalties_of(cases: list[Case]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Length, penalty of all errors and of omissions of each translation, means over raters; (case, translation)."""
    length, everything, omitted = np.zeros((3, len(cases), len(cases[0].responses)))
    for row, case in enumerate(cases):
        place = {response.id: column for column, response in enumerate(case.responses)}
        length[row] = [num_characters(response) for response in case.responses]
        number = len({rating.rater for rating in case.ratings})
        for rating in case.ratings:
            at = row, place[rating.response]
            everything[at] -= rating.value / number
            for error in (rating.meta or {}).get("errors", ()):
                if "Omission" in error["row"]["category"]:
                    omitted[at] += PENALTY.get(error["row"]["severity"].lower(), 0.0) / number
    return length, everything, omitted


def spread(value: float, drawn: np.ndarray) -> str:
    """The value with the 2.5% and 97.5% quantiles of its resamples."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


@APP.command("judge")
def write_judged(source: Path, out: Path) -> None:
    """Write the cases with a judgment by each rater of every two translations."""
    print(f"{write_cases(out, map(judged, read_cases(source)))} cases in {out}")


@APP.command("means")
def write_means(source: Path, out: Path) -> None:
    """Write each translation's mean over its raters as a file of scores."""
    lines = [msgspec.json.encode(means(case)) for case in read_cases(source)]
    out.write_bytes(b"\n".join(lines) + b"\n")
    print(f"{len(lines)} lines in {out}")


if __name__ == "__main__":
    APP()
