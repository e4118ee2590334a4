"""What debiasing did: counts of both sides before and after, and what a model makes of the pairs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.core.types import Counts
from steelyard.curation import debiasing
from steelyard.ranking.pairs import UNLISTED
from steelyard.stages.debias.settings import Config
from steelyard.stages.debias.surveying import Survey
from steelyard.statistics.ratios import share_of

_DOWNSAMPLED = "downsampled"


def count(found: Survey, kept: NDArray[np.bool_], num_left: int) -> Counts:
    """The pairs, and how many cases had some and are left without."""
    num_dropped = int((~kept).sum())
    noted = {
        "cases": len(found.pairs_of_case),
        "cases without a pair": int((found.pairs_of_case == 0).sum()),
        "cases left without a pair": num_left,
        "pairs on neither side": int((found.side == 0).sum()),
        UNLISTED: found.num_unlisted,
    }
    return Counts(
        num_in=len(kept),
        num_used=int(kept.sum()),
        dropped={_DOWNSAMPLED: num_dropped} if num_dropped else {},
        noted={name: number for name, number in noted.items() if number},
    )


def summarise(found: Survey, kept: NDArray[np.bool_], config: Config, *, with_scores: bool) -> dict[str, Any]:
    """Before and after: the sides, overall and by group, and what a model makes of the pairs."""
    everything = np.ones(len(kept), bool)
    stages = {"before": everything, "after": kept}
    number = len(found.groups)
    by_group = {name: debiasing.balances(found.side[own], found.group[own], number) for name, own in stages.items()}
    whole = np.zeros(len(kept), np.int64)
    overall = {name: debiasing.balances(found.side[own], whole[own], 1)[0].as_row() for name, own in stages.items()}
    return {
        "by": config.by,
        "unit": f"tokens of {config.tokenizer}" if config.tokenizer else "characters",
        "within": config.within,
        "overall": overall,
        "groups": [
            {"group": list(name), **{when: rows[place].as_row() for when, rows in by_group.items()}}
            for place, name in enumerate(found.groups)
        ],
        "longer_is_better": {name: _share(found, own, found.is_longer, config) for name, own in stages.items()},
        "accuracy": _accuracy(found, stages, config) if with_scores else None,
    }


def _accuracy(found: Survey, stages: dict[str, NDArray[np.bool_]], config: Config) -> dict[str, Any]:
    """How often the model prefers the better response; equal scores are wrong, pairs without a score left out."""
    is_scored, is_right = ~np.isnan(found.margin), found.margin > 0
    parts = {
        "all": is_scored,
        "length_matched": is_scored & found.is_matched,
        "better_is_longer": is_scored & found.is_longer,
        "better_is_not_longer": is_scored & ~found.is_longer,
    }
    return {
        "num_unscored": int((~is_scored).sum()),
        "matched": config.closeness,
        **{
            part: {name: _share(found, own & counted, is_right, config) for name, own in stages.items()}
            for part, counted in parts.items()
        },
    }


def _share(found: Survey, counted: NDArray[np.bool_], right: NDArray[np.bool_], config: Config) -> dict[str, Any]:
    return share_of(found.prompt, counted, right, seed=config.seed).record()
