"""Agreement between judges: observed, Cohen's kappa of two, and Krippendorff's alpha of all, with intervals."""

from collections.abc import Callable

import msgspec
import numpy as np

from steelyard.core.numerics import Floats
from steelyard.core.types import Record
from steelyard.statistics import agreement
from steelyard.statistics.bias import Chosen
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import Draws, UnitSums, estimate_shares

MOST_PAIRS = 100
"""How many pairs of judges are listed."""


class PairAgreement(Record, frozen=True, kw_only=True):
    """Agreement of two judges, or of two kinds, on the items that both labelled; ``kappa`` is Cohen's."""

    judges: tuple[str, str] | None = None
    kinds: tuple[str, str] | None = None
    agreement: Estimate
    agreement_of_strict: Estimate
    kappa: Estimate


class Alpha(Record, frozen=True, kw_only=True):
    """Krippendorff's nominal alpha of all judges, and of the judges of each kind."""

    all: Estimate
    by_kind: dict[str, Estimate]


class AgreementSummary(Record, frozen=True, kw_only=True):
    """Agreement of every two judges, of every two kinds, and of all judges."""

    judges: tuple[PairAgreement, ...]
    num_pairs_of_judges_not_listed: int
    kinds: tuple[PairAgreement, ...]
    alpha: Alpha
    num_verdicts_of_pairs_not_counted_apart: int


def agreement_summary(draws: Draws, *, num_not_counted_apart: int = 0) -> AgreementSummary:
    """Return observed agreement and kappa of every two judges and kinds, and alpha of all judges and by kind."""
    pairs = [group for group in draws.groups if group[0] == "judges"]
    number = dict(zip(pairs, draws.point(pairs).sum(axis=-1).tolist(), strict=True))
    listed = sorted(pairs, key=lambda group: (-number[group], group))[:MOST_PAIRS]
    kinds = sorted(group for group in draws.groups if group[0] == "kinds")
    alphas = {group[1:]: _alpha(draws.totals([group])) for group in draws.groups if group[0] == "alpha"}
    return AgreementSummary(
        judges=tuple(
            _pair_agreement(totals, judges=(first, second))
            for (_, first, second), totals in zip(listed, draws.totals_each([[group] for group in listed]), strict=True)
        ),
        num_pairs_of_judges_not_listed=len(pairs) - len(listed),
        kinds=tuple(_pair_agreement(draws.totals([group]), kinds=(group[1], group[2])) for group in kinds),
        alpha=Alpha(
            all=alphas.get((), Estimate(None, None, None, 0)),
            by_kind={kind[0]: alphas[kind] for kind in sorted(alphas) if kind},
        ),
        num_verdicts_of_pairs_not_counted_apart=num_not_counted_apart,
    )


def _pair_agreement(
    totals: UnitSums, *, judges: tuple[str, str] | None = None, kinds: tuple[str, str] | None = None
) -> PairAgreement:
    same, same_strict = estimate_shares(totals, _same_label)
    kappa = _beyond_chance(same, agreement.kappa, totals)
    return PairAgreement(judges=judges, kinds=kinds, agreement=same, agreement_of_strict=same_strict, kappa=kappa)


def _beyond_chance(same: Estimate, coefficient: Callable[[Floats], Floats], totals: UnitSums) -> Estimate:
    num_units = int(totals.by_unit.any(axis=1).sum())
    return agreement.beyond_chance(same, float(coefficient(totals.point)), totals.point, num_units)


def _same_label(cells: Floats) -> Chosen:
    """Count items with one label from both, among all items and among those on which neither said tie."""
    below = np.stack([cells.sum(axis=-1), agreement.num_strict(cells)], axis=-1)
    return Chosen(np.stack([agreement.num_same(cells), agreement.num_same_strict(cells)], axis=-1), below)


def _alpha(totals: UnitSums) -> Estimate:
    same = msgspec.structs.replace(estimate_shares(totals, _same_label)[0], n=round(float(totals.point.sum())))
    return _beyond_chance(same, agreement.alpha, totals)
