"""Ratings against the pairs that they order, as training data of a linear head on frozen features.

    python studies/ratings_and_pairs.py CASES --encoder FOLDER --dimension mqm
    python studies/ratings_and_pairs.py CASES --dimension correct

CASES has ratings. Features are the mean of a sentence encoder's last hidden states (FOLDER), or hashed character
n-grams without one. Every arm fits the same head by L-BFGS with the losses of training; the strength of its ridge is
the one with the best pair accuracy on a fifth of the training prompts. Held out is 30% of the prompts, by seed.
Differences are between arms on the same held-out prompts; the interval resamples prompts.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import typer

from steelyard.core.numerics import Floats, generator
from steelyard.core.types import Case
from steelyard.io.cases import read_cases
from steelyard.networks.ratings import pairs_by_ratings, rating_scale, targets_of
from steelyard.networks.settings import RatingCenter, TargetScale
from steelyard.training.batching import all_slots, loss_inputs
from steelyard.training.examples import Example
from steelyard.training.held_out import measure, prompt_statistics_of
from steelyard.training.losses import LOSSES, Objective, step_loss, sums_of, weights_of

_STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)
_NUM_DRAWS = 2000


class Arm(NamedTuple):
    """A loss, the weight of pairs beside ratings, and the mean from which targets are taken."""

    loss: str
    pair_weight: float = 0.0
    center: RatingCenter = "data"


ARMS = {
    "pairs": Arm("bradley-terry", 1.0),
    "ratings, squared error": Arm("mean-squared-error"),
    "ratings less the prompt's mean": Arm("mean-squared-error", center="prompt"),
    "ratings, cross-entropy": Arm("binary-cross-entropy"),
    "both, pair weight 0.3": Arm("mean-squared-error", 0.3),
}


def encoded(texts: Sequence[str], folder: Path) -> Floats:
    """Return the mean of the last hidden states over the tokens of each text."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    order = np.argsort([len(text) for text in texts])
    states = np.zeros((len(texts), model.config.hidden_size))
    for places in np.array_split(order, -(-len(texts) // 64)):
        batch = tokenizer(
            [texts[place] for place in places], padding=True, truncation=True, max_length=256, return_tensors="pt"
        )
        with torch.inference_mode():
            hidden = model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        states[places] = ((hidden * mask).sum(1) / mask.sum(1)).numpy()
    return states


def hashed(texts: Sequence[str]) -> Floats:
    """Return hashed counts of character n-grams up to 3, of unit length, on their 256 first principal axes."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import HashingVectorizer

    counts = HashingVectorizer(analyzer="char", ngram_range=(1, 3), n_features=2**16).transform(texts)
    return TruncatedSVD(256, random_state=0).fit_transform(counts)


def examples_of(cases: Sequence[Case], scale: TargetScale, pair_weight: float, *, has_ratings: bool) -> list[Example]:
    """Return examples whose rows are empty: their features stand beside them."""
    examples = []
    for case in cases:
        targets = targets_of(case, scale)
        pairs = pairs_by_ratings(targets) if pair_weight else ()
        pairs = tuple(pair._replace(weight=pair_weight) for pair in pairs)
        examples.append(Example(((),) * len(case.responses), pairs, ratings=targets if has_ratings else ()))
    return examples


def fitted(features: Floats, examples: Sequence[Example], arm: Arm, strength: float) -> Floats:
    """Return the head of the least loss with a ridge."""
    inputs = loss_inputs(all_slots(range(len(examples)), [len(example.rows) for example in examples]), examples)
    objective, known = Objective(arm.loss), torch.from_numpy(features)
    head = torch.zeros(features.shape[1], dtype=torch.float64, requires_grad=True)
    is_mixed = LOSSES[arm.loss].rating_link is not None and arm.pair_weight > 0
    factor = torch.zeros(1, dtype=torch.float64, requires_grad=True) if is_mixed else None
    weights = weights_of(inputs, objective)
    optimiser = torch.optim.LBFGS(
        [head] if factor is None else [head, factor], max_iter=60, line_search_fn="strong_wolfe"
    )

    def closure() -> float:
        optimiser.zero_grad()
        loss = step_loss(sums_of(known @ head, inputs, objective, factor), weights, objective)
        loss = loss + strength * head.square().sum()
        loss.backward()
        return loss.item()

    optimiser.step(closure)
    return head.detach().numpy()


def scores_of(cases: Sequence[Case], table: dict[str, Floats], head: Floats) -> list[Floats]:
    """Return the rewards of each case's responses."""
    return [table[case.prompt.id] @ head for case in cases]


def chosen_head(
    train: Sequence[Case], table: dict[str, Floats], scale: TargetScale, arm: Arm, seed: int
) -> tuple[Floats, float]:
    """Return the head of all training cases at the strength that is best on a fifth of them, and this strength."""
    order = generator(seed, "inner").permutation(len(train))
    inner, check = ([train[place] for place in places] for places in np.split(order, [len(train) * 4 // 5]))
    has_ratings = LOSSES[arm.loss].rating_link is not None

    def fit(cases: Sequence[Case], strength: float) -> Floats:
        features = np.concatenate([table[case.prompt.id] for case in cases])
        return fitted(features, examples_of(cases, scale, arm.pair_weight, has_ratings=has_ratings), arm, strength)

    checked = examples_of(check, scale, 1.0, has_ratings=True)
    accuracy = [
        measure(scores_of(check, table, fit(inner, strength)), checked, scale=scale).accuracy for strength in _STRENGTHS
    ]
    best = _STRENGTHS[int(np.argmax(accuracy))]
    return fit(train, best), best


def main(
    cases: Path, dimension: str, *, encoder: Path | None = None, share: float = 1.0, seeds: int = 3, most: int = 400
) -> None:
    """Print a line for each arm: accuracy over pairs and correlation with ratings, and differences from pairs.

    ``share`` is that of the training prompts, ``most`` the number of prompts of the file.
    """
    rated = [case for case in read_cases(cases) if len({each.value for each in case.ratings}) > 1][:most]
    texts = [response.text or "" for case in rated for response in case.responses]
    states = hashed(texts) if encoder is None else encoded(texts, encoder)
    states = (states - states.mean(0)) / states.std(0) / states.shape[1] ** 0.5
    ends = np.cumsum([len(case.responses) for case in rated])[:-1]
    table = {case.prompt.id: part for case, part in zip(rated, np.split(states, ends), strict=True)}
    is_bounded = all(each.range is not None or 0 <= each.value <= 1 for case in rated for each in case.ratings)
    arms = {name: arm for name, arm in ARMS.items() if is_bounded or arm.loss != "binary-cross-entropy"}
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in arms}
    strengths: dict[str, list[float]] = {name: [] for name in arms}
    correct = {name: np.zeros((seeds, len(rated))) for name in arms}
    pairs = np.zeros((seeds, len(rated)))
    for seed in range(seeds):
        order = generator(seed, "split").permutation(len(rated))
        test, rest = order[: len(order) * 3 // 10], order[len(order) * 3 // 10 :]
        train = [rated[place] for place in rest[: max(20, round(share * len(rest)))]]
        held_out = [rated[place] for place in test]
        for name, arm in arms.items():
            link = LOSSES[arm.loss].rating_link or "identity"
            scale = rating_scale(train, dimension, link, center=arm.center, where=str(cases))
            head, strength = chosen_head(train, table, scale, arm, seed)
            # Every arm is measured against the same ratings.
            plain = rating_scale(train, dimension, link, where=str(cases))
            examples = examples_of(held_out, plain, 1.0, has_ratings=True)
            rewards = scores_of(held_out, table, head)
            result, statistics = measure(rewards, examples, scale=plain), prompt_statistics_of(rewards, examples)
            assert result.ratings is not None
            figures[name].append((result.accuracy, result.ratings.pearson or 0.0))
            strengths[name].append(strength)
            correct[name][seed, test] = statistics.num_correct
            pairs[seed, test] = statistics.num_pairs
    print(f"{cases.name}, {len(rated)} prompts, {len(texts)} answers, share {share}, {seeds} seeds")
    draws = generator(0, "draws").integers(0, len(rated), (_NUM_DRAWS, len(rated)))
    print("| arm | accuracy | difference from pairs | Pearson, each seed | ridge |\n|---|---|---|---|---|")
    for name in arms:
        gain = (correct[name] - correct["pairs"]).sum(0)
        drawn = gain[draws].sum(1) / pairs.sum(0)[draws].sum(1)
        low, high = np.quantile(drawn, (0.025, 0.975))
        resampled = correct[name].sum(0)[draws].sum(1) / pairs.sum(0)[draws].sum(1)
        bounds = np.quantile(resampled, (0.025, 0.975))
        accuracy = correct[name].sum() / pairs.sum()
        print(
            f"| {name} | {accuracy:.3f} [{bounds[0]:.3f}, {bounds[1]:.3f}] | {gain.sum() / pairs.sum():+.3f} "
            f"[{low:+.3f}, {high:+.3f}] | {', '.join(f'{pearson:.3f}' for _, pearson in figures[name])} | "
            f"{', '.join(f'{strength:g}' for strength in strengths[name])} |"
        )


if __name__ == "__main__":
    typer.run(main)
