"""The share of wrong labels, from the answers of several people to the same pairs.

Nobody knows the truth. How often two people contradict each other on one pair still bounds how often the labels that
are made of their answers are wrong. Two models of a person's errors are the two ends:

- **Independent errors.** On every pair a person errs with the same probability e, independently of the others. Two
  people then disagree on d = 2e(1 - e) of the pairs, so that e = (1 - sqrt(1 - 2d)) / 2. Given a pair's answers, k for
  its label and m - k against it, and no knowledge of the truth before, the label is wrong with probability
  1 / (1 + ((1 - e) / e)^(2k - m)) (Bayes' rule). This holds for every rule that makes labels of these answers: a vote,
  unanimity, CHEEMS's Algorithm 1, or one person's word.
- **Coin tosses.** Pairs differ in difficulty. At the other end a share of 2d of the pairs is a coin toss for everybody,
  and on all others nobody errs. A contradicted label is then wrong with probability 1/2, and one that m people gave
  unanimously with half the probability that its pair is a toss: 2d 2^(1-m) / (2d 2^(1-m) + 1 - 2d).

If a person is at least as often right as wrong on every pair, the truth of two or three answers a pair lies between the
two. Agreement tells only the mean over pairs of x = e(1 - e), and the probability of a wrong vote is a convex function
of x: with a known mean it is least if all pairs are alike, and largest if x is 0 or 1/4 (Jensen's inequality).
Independence therefore understates the label error. Errors that most people share, such as a wrong belief, are in no
disagreement: neither end has them.

An interval starts from that of d (`intervals`). The label error follows e on the scale of logits, with the slope that
the resamples show: the error of a vote is about the square of one person's, so that its interval is twice as long
there. Labels against most of the answers add an error that d does not determine; it has the interval of their share.
Values are corrected for the bias that the resamples show. Parts of one error, categories of a mean, and label error and
accuracy combine their intervals with the correlations over resamples (Zou and Donner, 2008).
"""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Booleans, Floats, Integers, ratio, sigmoid
from steelyard.statistics.bootstrap import Blocks, Sums, Terms, add_up, evidence_of
from steelyard.statistics.intervals import Estimate, Evidence, interval
from steelyard.statistics.prompt_means import Grouping, by_category

FEWEST_PROMPTS = 20
"""Prompts with a pair that two people answered, below which a category has no label error of its own."""
TOO_FEW = "too few pairs with two answers"
"""The reason for having no value with fewer."""
_LEAST = 1e-12
"""The least probability whose logarithm is taken."""
_MOST_AHEAD = 64
_NUM_SUMS = 3


class AnsweredPairs(NamedTuple):
    """Pairs with strict answers of people; all arrays have shape (pair,).

    ``agreeing`` and ``contrary`` count the people whose answer is the label, or its opposite. A pair without a label
    tells only how often people disagree: ``agreeing`` then counts the answers for either response. ``is_right`` is
    whether the model agrees with the label.
    """

    prompt: Integers
    agreeing: Integers
    contrary: Integers
    is_labelled: Booleans
    is_right: Booleans


class Shares(NamedTuple):
    """One quantity in each group and over groups: values, resampled values, and intervals.

    ``estimates`` has the groups in order; ``macro`` is the plain mean over groups, ``micro`` the mean over pairs.
    """

    estimates: tuple[Estimate, ...]
    macro: Estimate
    micro: Estimate


class LabelErrors(NamedTuple):
    """The label error of each group and over groups, and what follows for a perfect model and for this one.

    ``person``: the error of one person's answer. ``label``: of the labels, with independent errors; ``most``: with all
    errors on coin tosses. ``perfect``: the accuracy of a model that is always right, 1 - ``label``. ``model``: this
    model's on the same pairs. ``distance``: ``perfect`` minus ``model``.
    """

    groups: tuple[str, ...]
    person: Shares
    label: Shares
    most: Shares
    perfect: Shares
    model: Shares
    distance: Shares


def person_error(disagreement: Floats) -> Floats:
    """Return the error of one person's answer from the share of pairs on which two disagree: at most 1/2."""
    return (1 - np.sqrt(1 - 2 * np.clip(disagreement, 0.0, 0.5))) / 2


def wrong_if_independent(agreeing: Integers, contrary: Integers, disagreement: Floats) -> Floats:
    """Return the probability that a label with these answers is wrong if all people err alike on all pairs."""
    error = np.clip(person_error(disagreement), _LEAST, 0.5)
    return sigmoid((contrary - agreeing).astype(np.float64) * np.log((1 - error) / error))


def wrong_if_tossed(agreeing: Integers, contrary: Integers, disagreement: Floats) -> Floats:
    """Return the probability that a label with these answers is wrong if people err on coin tosses only."""
    tossed = np.clip(2 * disagreement, 0.0, 1.0)
    unanimous = tossed * 0.5 ** (agreeing + contrary - 1.0)
    half = ratio(unanimous, unanimous + 1 - tossed) / 2
    one_side = np.where(agreeing > 0, half, 1 - half)
    return np.where((agreeing > 0) & (contrary > 0), 0.5, one_side)


def label_errors(blocks: Blocks, pairs: AnsweredPairs) -> LabelErrors | None:
    """Estimate the label error from the answers to pairs of the blocks' prompts.

    A category with few pairs that two people answered has no value of its own; in the means it has the disagreement of
    all such categories together. None without a labelled pair, or with few pairs of two answers in all.
    """
    groups = _count(blocks, pairs)
    if groups is None:
        return None
    person = [_follow(groups.error, groups, at, _single_error) for at in range(len(groups.names))]
    label = _wrong(groups, wrong_if_independent, _single_error)
    most = _wrong(groups, wrong_if_tossed, _tossed_error)
    model = _accuracy(groups)
    return LabelErrors(
        groups.names,
        _combine(groups.error, person, groups).shares,
        label.shares,
        most.shares,
        complement(label.shares),
        model.shares,
        _distance(label, model),
    )


class _Values(NamedTuple):
    """Values by group, shape (group,), and of every resample, (resample, group)."""

    point: Floats
    resampled: Floats


class _Groups(NamedTuple):
    """The categories with a labelled pair, and their sums.

    ``is_few``: without enough pairs of two answers, (group,). ``kinds``: answers for and against a label, (2, kind);
    ``counts`` of the labelled pairs of each kind, (…, group, kind). ``spread``: the interval of ``disagreement``.
    ``group`` is that of each prompt, negative for none, and ``num_pairs`` its labelled pairs; shape (prompt,).
    """

    names: tuple[str, ...]
    is_few: Booleans
    num_twice: Floats
    disagreement: _Values
    spread: tuple[Estimate, ...]
    kinds: Integers
    counts: Sums
    right: _Values
    blocks: Blocks
    group: Integers
    num_pairs: Integers

    @property
    def error(self) -> _Values:
        """The error of one person's answer."""
        return _Values(*(person_error(part) for part in self.disagreement))

    @property
    def num_labelled(self) -> Floats:
        """The labelled pairs of each group."""
        return self.counts.point.sum(axis=-1)

    def share(self, numerators: Sequence[Floats]) -> _Values:
        """Return sums over the labelled pairs as shares of these."""
        return _Values(*(ratio(top, part.sum(axis=-1)) for top, part in zip(numerators, self.counts, strict=True)))

    def estimate(self, values: _Values, at: int) -> Estimate:
        """Return the share of a group's labelled pairs with its interval."""
        evidence = evidence_of(self.blocks, np.where(self.group == at, 0, -1), self.num_pairs)
        return interval(float(values.point[at]), values.resampled[:, at], self.num_labelled[at], evidence)


class _Part(NamedTuple):
    """Shares with the resampled values that their correlations come from."""

    shares: Shares
    values: _Values
    macro: Floats
    micro: Floats


def _count(blocks: Blocks, pairs: AnsweredPairs) -> _Groups | None:
    """Return the sums of the pairs by category; None without a labelled pair, or with few pairs of two answers."""
    grouping = by_category(blocks)
    answers = pairs.agreeing + pairs.contrary
    is_twice = answers > 1
    split = np.where(is_twice, 2.0 * pairs.agreeing * pairs.contrary / np.maximum(answers * (answers - 1), 1), 0.0)
    # Both models depend only on the difference of the two counts and on whether both occur: few kinds serve any number
    # of answers. Beyond a difference of `_MOST_AHEAD` a label is certain.
    excess = np.maximum(np.minimum(pairs.agreeing, pairs.contrary) - 1, 0)
    reduced = np.minimum(np.stack([pairs.agreeing, pairs.contrary]) - excess, _MOST_AHEAD)
    kinds, kind = np.unique(reduced, axis=1, return_inverse=True)
    kind = np.where(pairs.is_labelled, kind.reshape(-1), -1)
    columns = [split, is_twice, pairs.is_right & pairs.is_labelled, *(kind == at for at in range(kinds.shape[1]))]
    sums = add_up(blocks, Terms(pairs.prompt, grouping.group[pairs.prompt], columns), len(grouping.names))
    twice = np.bincount(pairs.prompt[is_twice], minlength=len(grouping.group))
    has_label = sums.point[:, _NUM_SUMS:].sum(axis=-1) > 0
    is_few, evidence = _pool_few(blocks, grouping, twice)
    if evidence is None or not has_label.any():
        return None
    disagreement = _Values(*(_disagreement(part, is_few, evidence.members) for part in sums))
    chosen = np.flatnonzero(has_label)
    spread = [
        interval(float(disagreement.point[at]), disagreement.resampled[:, at], sums.point[at, 1], evidence.of[at])
        for at in chosen.tolist()
    ]
    counts = Sums(*(part[..., chosen, _NUM_SUMS:] for part in sums))
    place = np.where(has_label, np.cumsum(has_label) - 1, -1)
    return _Groups(
        tuple(grouping.names[at] for at in chosen.tolist()),
        is_few[chosen],
        sums.point[chosen, 1],
        _Values(*(part[..., chosen] for part in disagreement)),
        tuple(spread),
        kinds,
        counts,
        _Values(*(ratio(part[..., chosen, 2], each.sum(axis=-1)) for part, each in zip(sums, counts, strict=True))),
        blocks,
        place[grouping.group],
        np.bincount(pairs.prompt[pairs.is_labelled], minlength=len(grouping.group)),
    )


class _PooledEvidence(NamedTuple):
    """The evidence of each category, and the categories whose answers those with few share; shape (category,)."""

    of: list[Evidence]
    members: Booleans


def _pool_few(blocks: Blocks, grouping: Grouping, twice: Integers) -> tuple[Booleans, _PooledEvidence | None]:
    """Return the categories with few pairs of two answers, and what evidence each has; None if all have few together.

    Those with few share the answers of all of them, or of all categories if theirs are few together.
    """
    group, numbers = grouping.group, range(len(grouping.names))
    evidence = [evidence_of(blocks, np.where(group == at, 0, -1), twice) for at in numbers]
    is_few = np.array([each.units < FEWEST_PROMPTS for each in evidence])
    if not is_few.any():
        return is_few, _PooledEvidence(evidence, ~is_few)
    for members in (is_few, np.ones_like(is_few)):
        shared = evidence_of(blocks, np.where(members[group], 0, -1), twice)
        if shared.units >= FEWEST_PROMPTS:
            used = [shared if few else each for each, few in zip(evidence, is_few.tolist(), strict=True)]
            return is_few, _PooledEvidence(used, members)
    return is_few, None


def _disagreement(sums: Floats, is_few: Booleans, members: Booleans) -> Floats:
    """Return the share of disagreeing answers of each category, (…, category)."""
    shared = sums[..., members, :2].sum(axis=-2, keepdims=True)
    used = np.where(is_few[:, None], shared, sums[..., :2])
    return ratio(used[..., 0], used[..., 1])


def _wrong(
    groups: _Groups, model: Callable[[Integers, Integers, Floats], Floats], end_of: Callable[[float], float]
) -> _Part:
    """Return the label error under a model.

    It has two parts: the error if every label were that of most answers, which follows the disagreement, and the
    addition of the labels against most answers, which follows their share.
    """
    high, low = groups.kinds.max(axis=0), groups.kinds.min(axis=0)
    is_overruled = groups.kinds[0] < groups.kinds[1]
    wrong = [model(high, low, share[..., None]) for share in groups.disagreement]
    basic = groups.share([(part * each).sum(axis=-1) for part, each in zip(groups.counts, wrong, strict=True)])
    number = range(len(groups.names))
    estimates = [_follow(basic, groups, at, end_of) for at in number]
    if not groups.counts.point[:, is_overruled].any():
        return _combine(basic, estimates, groups)
    added = groups.share(
        [(part * is_overruled * (1 - 2 * each)).sum(axis=-1) for part, each in zip(groups.counts, wrong, strict=True)]
    )
    overruled = groups.share([(part * is_overruled).sum(axis=-1) for part in groups.counts])
    for at in number:
        share = groups.estimate(overruled, at)
        # With none in this category, its labels may still be against most answers: by as much as elsewhere.
        cost = ratio(added.point[at], overruled.point[at]) if overruled.point[at] > 0 else _cost(added, overruled)
        ends = [None if end is None else float(end * cost) for end in (share.low, share.high)]
        addition = Estimate(float(added.point[at]), ends[0], ends[1], share.n)
        both = _Values(
            *(np.stack([first[..., at], second[..., at]], axis=-1) for first, second in zip(basic, added, strict=True))
        )
        estimates[at] = replace(_weighted(both, [estimates[at], addition], np.ones(2)), n=estimates[at].n)
    return _combine(_Values(*(first + second for first, second in zip(basic, added, strict=True))), estimates, groups)


def _cost(added: _Values, overruled: _Values) -> float:
    """Return the mean error that a label against most answers adds."""
    return float(added.point.sum() / overruled.point.sum())


def _follow(values: _Values, groups: _Groups, at: int, end_of: Callable[[float], float]) -> Estimate:
    """Return a group's value with the interval that follows from that of its disagreement.

    ``end_of`` gives the error of single answers at a disagreement, which bounds that of others where nobody disagrees.
    """
    value, point = float(values.point[at]), float(groups.error.point[at])
    spread = groups.spread[at]
    if point <= 0:
        bound = None if spread.high is None else end_of(spread.high)
        return Estimate(0.0, None if bound is None else 0.0, bound, spread.n)
    corrected = _without_bias(values, groups.disagreement, at)
    if spread.low is None or spread.high is None:
        return Estimate(corrected, None, None, spread.n)
    slope = _slope(values.resampled[:, at], groups.error.resampled[:, at])
    centre = float(logit(value) - slope * logit(point))
    low, high = (
        float(sigmoid(np.array(centre + slope * float(logit(_single_error(end)))))) for end in (spread.low, spread.high)
    )
    low, high = min(low, value) if spread.low > 0 else 0.0, max(high, value)
    return Estimate(min(max(corrected, low), high), low, high, spread.n)


def _without_bias(values: _Values, disagreement: _Values, at: int) -> float:
    """Return a group's value without the bias that resampling shows: a convex function is too high at few pairs.

    The mean over resamples is that at the mean disagreement, which is known, so that few resamples suffice.
    """
    drawn, share = values.resampled[:, at], disagreement.resampled[:, at]
    known = ~np.isnan(drawn) & ~np.isnan(share)
    value, drawn, share = float(values.point[at]), drawn[known], share[known] - disagreement.point[at]
    variance = float(share.var()) if len(share) else 0.0
    if variance <= 0:
        return value
    slope = float(((drawn - drawn.mean()) * share).mean()) / variance
    return 2 * value - float((drawn - slope * share).mean())


def _slope(values: Floats, errors: Floats) -> float:
    """Return by how much more than one person's error a value varies over resamples, both as logits."""
    known = (errors > 0) & ~np.isnan(values)
    if known.sum() < 2:
        return 1.0
    spread = float(logit(errors[known]).std())
    return float(logit(values[known]).std()) / spread if spread > _LEAST else 1.0


def logit(share: Floats | float) -> Floats:
    """Return the logits of shares, finite at 0 and 1."""
    inside = np.clip(np.asarray(share), _LEAST, 1 - _LEAST)
    return np.log(inside / (1 - inside))


def _single_error(disagreement: float) -> float:
    return float(person_error(np.array(disagreement)))


def _tossed_error(disagreement: float) -> float:
    return min(disagreement, 0.5)


def _combine(values: _Values, estimates: Sequence[Estimate], groups: _Groups) -> _Part:
    """Return groups and means. Groups that share a disagreement have no value of their own."""
    weights = groups.num_labelled / groups.num_labelled.sum()
    equal = np.full(len(estimates), 1 / len(estimates))
    shown = tuple(
        Estimate(None, None, None, int(number), why=TOO_FEW) if few else each
        for each, few, number in zip(estimates, groups.is_few.tolist(), groups.num_twice.tolist(), strict=True)
    )
    return _Part(
        Shares(shown, _weighted(values, estimates, equal), _weighted(values, estimates, weights)),
        values,
        values.resampled @ equal,
        values.resampled @ weights,
    )


def _weighted(values: _Values, estimates: Sequence[Estimate], weights: Floats) -> Estimate:
    """Return the weighted sum of parts: its distance to an end is that of its parts with their correlations."""
    centre = np.array([float(each) for each in estimates])
    bare = Estimate(float(centre @ weights), None, None, sum(each.n for each in estimates))
    lows = [each.low for each in estimates if each.low is not None]
    highs = [each.high for each in estimates if each.high is not None]
    if len(lows) < len(estimates) or len(highs) < len(estimates):
        return bare
    alike = _correlations(values.resampled)
    below, above = (weights * np.abs(centre - np.array(ends)) for ends in (lows, highs))
    low, high = (sqrt(max(float(reach @ alike @ reach), 0.0)) for reach in (below, above))
    return replace(bare, low=max(0.0, float(centre @ weights) - low), high=min(1.0, float(centre @ weights) + high))


def _correlations(resampled: Floats) -> Floats:
    """Return the correlations of columns over resamples; 0 for a column that does not vary."""
    known = resampled[~np.isnan(resampled).any(axis=1)]
    centred = known - known.mean(axis=0) if len(known) else known
    length = np.sqrt((centred**2).sum(axis=0))
    scaled = centred / np.where(length > 0, length, 1.0)
    alike = scaled.T @ scaled
    np.fill_diagonal(alike, 1.0)
    return alike


def _accuracy(groups: _Groups) -> _Part:
    """Return the model's accuracy on the labelled pairs with an answer."""
    values, total = groups.right, float(groups.num_labelled.sum())
    weights = groups.num_labelled / total
    macro, micro = values.resampled.mean(axis=1), values.resampled @ weights
    everything = np.where(groups.group >= 0, 0, -1)
    of_macro, of_micro = (evidence_of(groups.blocks, group, groups.num_pairs) for group in (groups.group, everything))
    return _Part(
        Shares(
            tuple(groups.estimate(values, at) for at in range(len(groups.names))),
            interval(float(values.point.mean()), macro, total, of_macro),
            interval(float(values.point @ weights), micro, total, of_micro),
        ),
        values,
        macro,
        micro,
    )


def complement(shares: Shares) -> Shares:
    """Return 1 minus each share: what a perfect model reaches at this label error."""
    return Shares(tuple(map(complement_of, shares.estimates)), complement_of(shares.macro), complement_of(shares.micro))


def complement_of(estimate: Estimate) -> Estimate:
    """Return 1 minus a share."""
    value, low, high = (None if end is None else 1 - end for end in (estimate.value, estimate.high, estimate.low))
    return replace(estimate, value=value, low=low, high=high)


def _distance(label: _Part, model: _Part) -> Shares:
    """Return how far the model is below a perfect one."""
    return Shares(
        tuple(
            distance_to_perfect(error, accuracy, label.values.resampled[:, at], model.values.resampled[:, at])
            for at, (error, accuracy) in enumerate(zip(label.shares.estimates, model.shares.estimates, strict=True))
        ),
        distance_to_perfect(label.shares.macro, model.shares.macro, label.macro, model.macro),
        distance_to_perfect(label.shares.micro, model.shares.micro, label.micro, model.micro),
    )


def distance_to_perfect(error: Estimate, accuracy: Estimate, errors: Floats, accuracies: Floats) -> Estimate:
    """Return 1 - error - accuracy with the interval of their sum."""
    if error.value is None or accuracy.value is None:
        return Estimate(None, None, None, error.n, why=error.why)
    value = 1 - error.value - accuracy.value
    bare = Estimate(value, None, None, accuracy.n)
    if error.low is None or error.high is None or accuracy.low is None or accuracy.high is None:
        return bare
    alike = _correlations(np.stack([errors, accuracies], axis=1))
    below = np.array([error.high - error.value, accuracy.high - accuracy.value])
    above = np.array([error.value - error.low, accuracy.value - accuracy.low])
    low, high = (sqrt(max(float(reach @ alike @ reach), 0.0)) for reach in (below, above))
    return replace(bare, low=value - low, high=value + high)
