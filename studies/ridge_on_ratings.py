"""Ratings against the pairs that they order, as training data of the model ``ngram``.

    python studies/ridge_on_ratings.py CASES DIMENSION

CASES has ratings. Every arm fits the same character n-grams to the same training prompts: pairs by Bradley-Terry,
ratings by ridge regression, or ratings less the mean of their prompt. Held out is 30% of the prompts, by seed. Each
strength of the penalty (C) is the one with the best accuracy on a fifth of the training prompts. The interval resamples
prompts; differences are between arms on the same held-out prompts.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer
from msgspec.structs import replace

from steelyard.core.numerics import Floats, generator
from steelyard.core.plugins import build
from steelyard.core.types import Case, JsonObject, Pair
from steelyard.io.cases import read_cases
from steelyard.networks.ratings import pairs_by_ratings, rating_scale, targets_of

ARMS: dict[str, JsonObject] = {
    "pairs": {},
    "ratings": {"loss": "mean-squared-error"},
    "ratings less the prompt's mean": {"loss": "mean-squared-error", "rating_center": "prompt"},
}
_STRENGTHS = (0.1, 1.0, 10.0, 100.0)
_NUM_DRAWS = 2000


def with_pairs(cases: Sequence[Case], dimension: str, where: str) -> list[Case]:
    """Return the cases with the pairs that their mean ratings order."""
    scale = rating_scale(cases, dimension, "identity", where=where)
    return [
        replace(
            case,
            ranking=None,
            pairs=tuple(
                Pair(better=case.responses[pair.better].id, worse=case.responses[pair.worse].id)
                for pair in pairs_by_ratings(targets_of(case, scale))
            ),
        )
        for case in cases
    ]


def counts(train: Sequence[Case], test: Sequence[Case], settings: JsonObject) -> Floats:
    """Return for each test case the pairs that a model of the training cases orders rightly, a tie as half."""
    model = build("models", "ngram", {"train": "given"} | settings).fit(train)
    correct = np.zeros(len(test))
    for place, (case, line) in enumerate(zip(test, model.score(test), strict=True)):
        margins = [line.scores[pair.better] - line.scores[pair.worse] for pair in case.pairs or ()]
        correct[place] = sum(1.0 if margin > 0 else 0.5 * (margin == 0) for margin in margins)
    return correct


def main(cases: Path, dimension: str, *, seeds: int = 3, most: int = 400) -> None:
    """Print a line for each arm: accuracy over pairs, and the difference from pairs; ``most`` prompts of the file."""
    rated = [case for case in read_cases(cases) if len({each.value for each in case.ratings}) > 1][:most]
    listed = with_pairs(rated, dimension, str(cases))
    numbers = np.array([len(case.pairs or ()) for case in listed])
    correct, pairs = {name: np.zeros(len(listed)) for name in ARMS}, np.zeros(len(listed))
    strengths: dict[str, list[float]] = {name: [] for name in ARMS}
    for seed in range(seeds):
        order = generator(seed, "split").permutation(len(listed))
        test, rest = np.split(order, [len(order) * 3 // 10])
        train = [listed[place] for place in rest]
        shuffled = generator(seed, "inner").permutation(len(train))
        inner, check = ([train[place] for place in part] for part in np.split(shuffled, [len(train) * 4 // 5]))
        pairs[test] += numbers[test]
        for name, arm in ARMS.items():
            settings = arm if name == "pairs" else arm | {"dimensions": dimension}
            tried = [counts(inner, check, settings | {"inverse_regularisation": each}).sum() for each in _STRENGTHS]
            strengths[name].append(_STRENGTHS[int(np.argmax(tried))])
            best = settings | {"inverse_regularisation": strengths[name][-1]}
            correct[name][test] += counts(train, [listed[place] for place in test], best)
    print(f"{cases.name}, {len(listed)} prompts, {numbers.sum():,} pairs, {seeds} seeds")
    draws = generator(0, "draws").integers(0, len(listed), (_NUM_DRAWS, len(listed)))
    print("| arm | accuracy | less that of pairs | C, each seed |\n|---|---|---|---|")
    for name in ARMS:
        texts = []
        for gain, sign in ((correct[name], ""), (correct[name] - correct["pairs"], "+")):
            low, high = np.quantile(gain[draws].sum(1) / pairs[draws].sum(1), (0.025, 0.975))
            texts.append(f"{gain.sum() / pairs.sum():{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]")
        print(f"| {name} | {' | '.join(texts)} | {', '.join(f'{strength:g}' for strength in strengths[name])} |")


if __name__ == "__main__":
    typer.run(main)
