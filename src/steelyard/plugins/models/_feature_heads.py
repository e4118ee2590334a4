"""Heads on frozen features: Bradley-Terry for each place (a layer and a pooling), then all of them or the best."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.plugins.models._bradley_terry import bradley_terry

Floats = NDArray[np.float64]
Table = NDArray[np.float32]
Positions = NDArray[np.int64]


class Labelled(NamedTuple):
    """Features of shape (response, place, coordinate) and pairs by position, with the inner fold of their prompts."""

    features: Table
    better: Positions
    worse: Positions
    weight: Floats
    fold: Positions

    def chosen(self, keep: NDArray[np.bool_]) -> "Labelled":
        """These pairs only."""
        return Labelled(self.features, self.better[keep], self.worse[keep], self.weight[keep], self.fold[keep])


class Measures(NamedTuple):
    """Which heads: ``ensemble`` (all, one C) or ``nested`` (the best one by inner folds, of all places and Cs)."""

    head: Literal["ensemble", "nested"]
    inverse_regularisation: tuple[float, ...]


class Heads(NamedTuple):
    """All heads as one: weights of shape (place, coordinate), zero where a place is not used."""

    weights: Floats

    def score(self, features: Table) -> Floats:
        """One score a response, from features of shape (response, place, coordinate)."""
        # A place at a time: the whole table in double precision could be larger than memory.
        scores = np.zeros(len(features))
        for place in np.flatnonzero(self.weights.any(axis=1)):
            scores += features[:, place] @ self.weights[place]
        return scores


def fit_heads(labelled: Labelled, measures: Measures) -> Heads:
    """The heads of the pairs. The scores of an ensemble are in standard deviations of the training margins."""
    if measures.head == "nested":
        place, strength = _best(labelled, measures)
        return Heads(_alone(labelled, place, _head(labelled, place, strength)))
    num_places = labelled.features.shape[1]
    weights = np.zeros(labelled.features.shape[1:])
    for place in range(num_places):
        own = _head(labelled, place, measures.inverse_regularisation[0])
        deviation = float((_differences(labelled, place) @ own).std())
        weights[place] = own / (deviation * num_places) if deviation > 0 else own / num_places
    return Heads(weights)


def _alone(labelled: Labelled, place: int, weights: Floats) -> Floats:
    found = np.zeros(labelled.features.shape[1:])
    found[place] = weights
    return found


def _best(labelled: Labelled, measures: Measures) -> tuple[int, float]:
    """The place and C with the greatest likelihood of the inner folds, each predicted from the others."""
    settings = [
        (place, strength)
        for place in range(labelled.features.shape[1])
        for strength in measures.inverse_regularisation
    ]  # fmt: skip
    if len(settings) == 1 or len(np.unique(labelled.fold)) < 2:
        return settings[0]
    return min(settings, key=lambda setting: _inner_loss(labelled, *setting))


def _inner_loss(labelled: Labelled, place: int, strength: float) -> float:
    loss = 0.0
    for fold in np.unique(labelled.fold):
        is_out = labelled.fold == fold
        held_out = labelled.chosen(is_out)
        margin = _differences(held_out, place) @ _head(labelled.chosen(~is_out), place, strength)
        loss += float(held_out.weight @ np.logaddexp(0, -margin))
    return loss


def _head(labelled: Labelled, place: int, strength: float) -> Floats:
    """The weights of one place for raw features.

    Each coordinate is divided by its deviation among the responses of the pairs: in middle layers a few coordinates
    are a thousand times the others. Then by the root of their number, so that C means the same for every width.
    """
    taken = labelled.features[np.union1d(labelled.better, labelled.worse), place].astype(np.float64)
    deviation = taken.std(axis=0)
    # What is constant up to rounding says nothing, and would be blown up.
    varies = deviation > 1e-6 * np.maximum(np.abs(taken).max(axis=0), 1e-30)
    scale = np.where(varies, 1 / np.where(varies, deviation, 1.0), 0.0) / np.sqrt(taken.shape[1])
    differences = _differences(labelled, place) * scale
    return bradley_terry(differences, labelled.weight, inverse_regularisation=strength) * scale


def _differences(labelled: Labelled, place: int) -> Floats:
    own = labelled.features[:, place]
    return own[labelled.better].astype(np.float64) - own[labelled.worse]
