"""A frozen decoder's hidden states under linear heads: a small backbone fitted to pairs or ratings of few cases."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.errors import ConfigError
from steelyard.core.numerics import Floats, generator
from steelyard.core.remedies import FILE, Advice, Remedy
from steelyard.core.types import Case, JsonObject
from steelyard.networks.settings import FeatureSettings, RatingCenter
from steelyard.plugins.models._cross_fitted import (
    CrossFitted,
    FlatPairs,
    FlatRatings,
    TrainingEvidence,
    bradley_terry,
    normalised,
    ridge,
)
from steelyard.ranking.pairs import PairChoice

Table = NDArray[np.float32]
Positions = NDArray[np.int64]


class Config(FeatureSettings, frozen=True):
    """Settings of the backbone, its features and the heads on them.

    Each layer and pooling, standardised by coordinate, has a head; ``head`` is their ``ensemble`` (the mean of their
    standardised scores, or of the ratings that they predict), or ``nested``: the layer, pooling and regularisation that
    does best on ``inner_folds`` of the training prompts. A case whose prompt occurs in the training cases is scored by
    a fit without that prompt.
    """

    train: str = ""
    """The case file to learn from."""
    pairs: PairChoice | None = None
    """Which pairs are learned from. Default: the pairs that a case lists, or else every pair across tiers."""
    loss: Literal["bradley-terry", "mean-squared-error"] = "bradley-terry"
    """bradley-terry learns from pairs, mean-squared-error from ratings by ridge regression."""
    dimensions: str | dict[str, float] | None = None
    """For ratings: the dimension, or a table of dimensions with weights. Default: the only one of the cases."""
    rating_center: RatingCenter = "data"
    """For ratings: whether targets are ratings less the mean of all (data), or of each prompt's own."""
    head: Literal["ensemble", "nested"] = "ensemble"
    """The mean of all heads (ensemble), or the one that is best on inner folds (nested)."""
    inverse_regularisation: tuple[float, ...] = (1.0,)
    """scikit-learn's C for features of unit length; several are for nested only."""
    folds: int = 5
    """The number of folds, by which a prompt that was learned from is scored by a model without it."""
    inner_folds: int = 4
    """With nested: the number of folds that choose layer, pooling and regularisation."""


class Labelled(NamedTuple):
    """Features of shape (response, place, coordinate) and pairs by position, with the inner fold of their prompts."""

    features: Table
    better: Positions
    worse: Positions
    weight: Floats
    fold: Positions

    def select(self, keep: NDArray[np.bool_]) -> "Labelled":
        """Return the features with these pairs only."""
        return Labelled(self.features, self.better[keep], self.worse[keep], self.weight[keep], self.fold[keep])


class Rated(NamedTuple):
    """Features of shape (response, place, coordinate) and targets by position, with the inner fold of their prompts."""

    features: Table
    response: Positions
    target: Floats
    weight: Floats
    fold: Positions

    def select(self, keep: NDArray[np.bool_]) -> "Rated":
        """Return the features with these targets only."""
        return Rated(self.features, self.response[keep], self.target[keep], self.weight[keep], self.fold[keep])


class HeadSettings(NamedTuple):
    """The heads: ``ensemble`` (all, one C) or ``nested`` (the best by inner folds, of all places and Cs)."""

    head: Literal["ensemble", "nested"]
    inverse_regularisation: tuple[float, ...]


class Heads(NamedTuple):
    """All heads as one: weights of shape (place, coordinate), zero where a place is not used, and an intercept."""

    weights: Floats
    intercept: float = 0.0

    def score(self, features: Table) -> Floats:
        """Return one score per response, from features of shape (response, place, coordinate)."""
        # A place at a time: the whole table in double precision could be larger than memory.
        scores = np.full(len(features), self.intercept)
        for place in np.flatnonzero(self.weights.any(axis=1)):
            scores += features[:, place] @ self.weights[place]
        return scores


class FeatureModel(CrossFitted[Heads]):
    """Scores by heads on features; the features of a text are the same for every fit."""

    def __init__(self, config: Config) -> None:
        evidence = TrainingEvidence(config.pairs, config.loss, config.dimensions, config.rating_center)
        super().__init__(config.train, config.folds, evidence)
        self.config = config
        from steelyard.networks.features import FeatureStore

        self.library = FeatureStore(config)

    def protocol(self) -> JsonObject:
        """Return the hash of the backbone, its reading of text, the heads, and the hash of the training cases."""
        config = self.config
        return {
            "model": "features",
            **self.training_protocol(),
            **self.library.protocol(),
            "head": config.head,
            "inverse_regularisation": list(config.inverse_regularisation),
            "inner_folds": config.inner_folds if config.head == "nested" else None,
        }

    def rate(self, fitted: Heads, cases: Sequence[Case]) -> list[float]:
        """Return one score per response, in order."""
        return fitted.score(self.library.features(cases)).tolist()

    def cut_responses(self, case: Case) -> tuple[str, ...]:
        """Return the responses whose conversation is longer than the limit."""
        return tuple(response.id for response in case.responses if self.library.is_cut(case, response))

    def fit_fold(self, cases: Sequence[Case], evidence: FlatPairs | FlatRatings) -> Heads:
        """Return the heads of the cases' pairs or ratings."""
        numbers: dict[str, int] = {}
        prompt = np.array([numbers.setdefault(normalised(case), len(numbers)) for case in cases])
        config = self.config
        folds = generator(0, "inner folds").permutation(np.arange(len(numbers)) % config.inner_folds)
        fold, weight = folds[prompt[evidence.case]], np.array(evidence.weight, np.float64)
        features = self.library.features(cases)
        if isinstance(evidence, FlatRatings):
            target = np.array(evidence.target, np.float64)
            labelled = Rated(features, np.array(evidence.response), target, weight, fold)
        else:
            labelled = Labelled(features, np.array(evidence.better), np.array(evidence.worse), weight, fold)
        return fit_heads(labelled, HeadSettings(config.head, config.inverse_regularisation))


def build(config: Config) -> FeatureModel:
    """Return the model. Raises ConfigError without a backbone or training cases, and for invalid settings."""
    if not config.train:
        raise ConfigError(
            "the features model needs training cases",
            where="model.train",
            do=Advice("use ", Remedy("model.train", FILE)),
        )
    if config.folds < 2 or config.inner_folds < 2:
        raise ConfigError(f"folds={config.folds}, inner_folds={config.inner_folds}", allowed="2 or more")
    values = config.inverse_regularisation
    if not values or min(values) <= 0:
        raise ConfigError(f"inverse_regularisation={list(values)}", allowed="numbers above 0")
    if config.head == "ensemble" and len(values) > 1:
        raise ConfigError(
            "several inverse_regularisation with head=ensemble",
            do=Advice("give one, or use ", Remedy("model.head", "nested")),
        )
    model = FeatureModel(config)
    model.evidence.check()
    return model


def fit_heads(labelled: Labelled | Rated, settings: HeadSettings) -> Heads:
    """Return the heads of pairs or ratings.

    An ensemble of pairs has scores in standard deviations of the training margins, one of ratings in their unit.
    """
    num_places = labelled.features.shape[1]
    weights = np.zeros(labelled.features.shape[1:])
    if settings.head == "nested":
        place, strength = _best(labelled, settings)
        weights[place], intercept = _head(labelled, place, strength)
        return Heads(weights, intercept)
    intercepts = 0.0
    for place in range(num_places):
        head, intercept = _head(labelled, place, settings.inverse_regularisation[0])
        deviation = 1.0 if isinstance(labelled, Rated) else float((_differences(labelled, place) @ head).std())
        weights[place] = head / (deviation * num_places) if deviation > 0 else head / num_places
        intercepts += intercept / num_places
    return Heads(weights, intercepts)


def _best(labelled: Labelled | Rated, settings: HeadSettings) -> tuple[int, float]:
    """Return the place and C with the least loss on the inner folds, each predicted from the others."""
    candidates = [
        (place, strength)
        for place in range(labelled.features.shape[1])
        for strength in settings.inverse_regularisation
    ]  # fmt: skip
    if len(candidates) == 1 or len(np.unique(labelled.fold)) < 2:
        return candidates[0]
    return min(candidates, key=lambda candidate: _inner_loss(labelled, *candidate))


def _inner_loss(labelled: Labelled | Rated, place: int, strength: float) -> float:
    loss = 0.0
    for fold in np.unique(labelled.fold):
        is_out = labelled.fold == fold
        held_out = labelled.select(is_out)
        head, intercept = _head(labelled.select(~is_out), place, strength)
        if isinstance(held_out, Rated):
            predicted = held_out.features[held_out.response, place] @ head + intercept
            loss += float(held_out.weight @ (predicted - held_out.target) ** 2)
        else:
            loss += float(held_out.weight @ np.logaddexp(0, -(_differences(held_out, place) @ head)))
    return loss


def _head(labelled: Labelled | Rated, place: int, strength: float) -> tuple[Floats, float]:
    """Return the weights of one place for raw features, and the intercept: 0 for pairs, in which it would cancel.

    Each coordinate is divided by its deviation among the responses with evidence: in middle layers a few coordinates
    are a thousand times the others. Then by the root of their number, so that C means the same for every width.
    """
    is_rated = isinstance(labelled, Rated)
    places = labelled.response if is_rated else np.union1d(labelled.better, labelled.worse)
    taken = labelled.features[places, place].astype(np.float64)
    deviation = taken.std(axis=0)
    # Coordinates that are constant up to rounding carry no information, and scaling would amplify the rounding.
    varies = deviation > 1e-6 * np.maximum(np.abs(taken).max(axis=0), 1e-30)
    scale = np.where(varies, 1 / np.where(varies, deviation, 1.0), 0.0) / np.sqrt(taken.shape[1])
    if is_rated:
        weights, intercept = ridge(taken * scale, labelled.target, labelled.weight, inverse_regularisation=strength)
        return weights * scale, intercept
    differences = _differences(labelled, place) * scale
    return bradley_terry(differences, labelled.weight, inverse_regularisation=strength) * scale, 0.0


def _differences(labelled: Labelled, place: int) -> Floats:
    features = labelled.features[:, place]
    return features[labelled.better].astype(np.float64) - features[labelled.worse]
