"""The share of wrong labels, from a random part of them that better judges made again.

The label error is the share of the relabelled pairs on which the better judges contradict the label. It needs no
assumption on how people err, other than `label_error`, but better judges who are right.

- **Categories** are estimated apart and weighted by their pairs in the bench (post-stratification), so that a sample
  with another mix of categories than the bench does no harm. Categories with few relabelled prompts are pooled, the
  smallest first, until the pool has enough: they have no value of their own.
- **Intervals** are score intervals with the effective number of prompts (`intervals`); prompts are drawn whole. More
  prompts whose labels are all wrong together are added than elsewhere: a sample may have missed them.
- **With verdicts of a judge on all pairs**, how often it contradicts labels of the other pairs adds to the evidence
  (`prediction_powered`). Its errors do no harm: they are the same on both parts of a random sample.
- **Exact match.** A model that is always right matches a prompt exactly if no label of the prompt is wrong. Only
  prompts all of whose pairs were made again tell this.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers, ratio
from steelyard.statistics.bootstrap import Blocks, Sums, Terms, add_up, evidence_of
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.label_error import FEWEST_PROMPTS, Shares, complement, distance_to_perfect
from steelyard.statistics.prediction_powered import Drawn, HumanSample, LabelSources, combine, ppi_estimate
from steelyard.statistics.prompt_means import by_category

TOO_FEW_RELABELLED = "too few relabelled prompts"
"""The reason for a category without a value of its own."""
FEWEST_UNPOOLED = 5
"""Relabelled prompts below which a category is pooled with others in the means."""
_PRIOR_SHARE, _PRIORS = 1 / 60, (0.75, 1.5)
"""Prompts, all of whose labels are wrong together, that are added for each relabelled prompt, and the limits of their
number; by simulation. Where nearly all wrong labels are in a few such prompts, a sample often has none of them, and its
other wrong labels look independent."""
_WRONG, _CHECKED, _SAME, _REST, _ALL, _RIGHT = 0, 1, 2, 4, 6, 7


class RelabelledBench(NamedTuple):
    """The labels of a bench, those that better judges made again, and a model; all arrays have shape (label,).

    ``is_checked``: better judges decided; ``is_wrong``: against the label. ``against``: the share of a judge's verdicts
    against the label, NaN without one. ``is_right``: the model agrees with the label. A label is that of a pair, or all
    labels of a prompt together.
    """

    prompt: Integers
    is_checked: Booleans
    is_wrong: Booleans
    against: Floats
    is_right: Booleans

    def by_prompt(self) -> "RelabelledBench":
        """Return the labels of each prompt as one: wrong if one of them is, right for the model if all of them are."""
        prompts, place, number = np.unique(self.prompt, return_inverse=True, return_counts=True)

        def count(mask: Booleans) -> Integers:
            return np.bincount(place[mask], minlength=len(prompts))

        has_verdicts = count(~np.isnan(self.against)) == number
        return RelabelledBench(
            prompts,
            count(self.is_checked) == number,
            count(self.is_checked & self.is_wrong) > 0,
            np.where(has_verdicts, count(self.against > 0.5) > 0, np.nan),
            count(self.is_right) == number,
        )


class RelabelledShares(NamedTuple):
    """The share of wrong labels, what a perfect model reaches, this model's share of right ones, and what it lacks.

    ``effective_labels``: a relabelled pair with the verdicts of a judge counts as this many alone.
    """

    groups: tuple[str, ...]
    label: Shares
    perfect: Shares
    model: Shares
    distance: Shares
    effective_labels: float


def relabelled_shares(blocks: Blocks, bench: RelabelledBench) -> RelabelledShares | None:
    """Estimate the share of wrong labels; None without a relabelled one. ``prompt`` numbers those of the blocks."""
    if not bench.is_checked.any():
        return None
    grouping = by_category(blocks)
    has_verdict = ~np.isnan(bench.against)
    against, same, rest = np.nan_to_num(bench.against), bench.is_checked & has_verdict, ~bench.is_checked & has_verdict
    columns = [
        *(bench.is_checked & bench.is_wrong, bench.is_checked, against * same, same, against * rest, rest),
        *(np.ones(len(bench.prompt)), bench.is_right),
    ]
    sums = add_up(blocks, Terms(bench.prompt, grouping.group[bench.prompt], columns), len(grouping.names))
    chosen = np.flatnonzero(sums.point[:, _ALL] > 0)
    place = np.full(len(grouping.names), -1)
    place[chosen] = np.arange(len(chosen))
    sums, group = Sums(*(part[..., chosen, :] for part in sums)), place[grouping.group]
    checked, everything = (
        np.bincount(bench.prompt, weights=each, minlength=len(group)).astype(np.float64)
        for each in (bench.is_checked, columns[_ALL])
    )
    num_prompts = np.bincount(group[checked > 0], minlength=len(chosen))
    pools = _pools(num_prompts)
    apart = _Sample(blocks, group, sums, checked)
    pooled = _Sample(blocks, pools.argmax(axis=0)[group], Sums(*(pools @ part for part in sums)), checked)
    right = Sums(*(part[..., [_RIGHT, _ALL, *[_ALL] * 4]] * [1, 1, 0, 0, 0, 0] for part in sums))
    accuracy = _Sample(blocks, group, right, everything)
    sizes = sums.point[:, _ALL] / sums.point[:, _ALL].sum()
    equal = np.full(len(chosen), 1 / len(chosen))
    errors = [pooled.mean(pools @ weights) for weights in (equal, sizes)]
    accuracies = [accuracy.mean(weights) for weights in (equal, sizes)]
    for at, only in enumerate(np.eye(len(chosen))):
        accuracies.append(accuracy.mean(only))
        has_enough = num_prompts[at] >= FEWEST_PROMPTS
        nothing = Estimate(None, None, None, int(sums.point[at, _CHECKED]), why=TOO_FEW_RELABELLED)
        errors.append(apart.mean(only) if has_enough else _Mean(nothing, np.zeros(0)))
    distances = [
        distance_to_perfect(wrong.estimate, model.estimate, wrong.resampled, model.resampled)
        for wrong, model in zip(errors, accuracies, strict=True)
    ]
    label, model = (_as_shares([each.estimate for each in part]) for part in (errors, accuracies))
    names = tuple(grouping.names[at] for at in chosen.tolist())
    return RelabelledShares(names, label, complement(label), model, _as_shares(distances), errors[1].effective_labels)


class _Mean(NamedTuple):
    """A share with its values in the resamples."""

    estimate: Estimate
    resampled: Floats
    effective_labels: float = 1.0


class _Sample(NamedTuple):
    """Sums by group of the labels and of a judge's verdicts on the same and on other pairs: (…, group, column).

    ``group`` and ``number``, the labels of a prompt, have shape (prompt,).
    """

    blocks: Blocks
    group: Integers
    sums: Sums
    number: Floats

    def mean(self, weights: Floats) -> _Mean:
        """Return the weighted mean over groups."""
        used = weights > 0
        parts: list[Drawn] = []
        for at in (_WRONG, _SAME, _REST):
            point, drawn = (ratio(part[..., used, at], part[..., used, at + 1]) @ weights[used] for part in self.sums)
            parts.append(Drawn(float(point), drawn))
        sources = LabelSources(*parts)
        # A prompt counts for as much as its group does, divided by the labels of the group.
        scale = ratio(weights, self.sums.point[:, _CHECKED])
        is_in = used[self.group] & (self.number > 0)
        evidence = evidence_of(
            self.blocks, np.where(is_in, 0, -1), np.where(is_in, self.number * scale[self.group], 0.0)
        )
        evidence = evidence._replace(prior=float(np.clip(evidence.units * _PRIOR_SHARE, *_PRIORS)))
        sample = HumanSample(self.sums.point[used, _CHECKED].sum(), evidence)
        combined = ppi_estimate(sources, sample)
        drawn = combine(sources, evidence).drawn if combined.weight else sources.human
        return _Mean(combined.estimate, drawn.resampled, combined.effective_labels)


def _pools(num_prompts: Integers) -> Floats:
    """Return pools of categories by their relabelled prompts: 1 for a member, 0 for others, (pool, category).

    The one of those with few prompts is last. With too few of the smallest, the next larger ones join them.
    """
    is_few = num_prompts < FEWEST_UNPOOLED
    total = 0
    for at in np.argsort(num_prompts, kind="stable").tolist():
        if not is_few[at] and (not is_few.any() or total >= FEWEST_UNPOOLED):
            break
        is_few[at] = True
        total += int(num_prompts[at])
    rows = np.eye(len(num_prompts))[~is_few]
    return np.concatenate([rows, is_few[None].astype(float)]) if is_few.any() else rows


def _as_shares(estimates: Sequence[Estimate]) -> Shares:
    macro, micro, *groups = estimates
    return Shares(tuple(groups), macro, micro)
