"""Is a model that learns from the filtered verdicts a better one: every arm trained and tested, many times over."""

from collections import defaultdict
from typing import Any

import numpy as np

from steelyard.core.arrays import Floats
from steelyard.core.errors import EvidenceError
from steelyard.core.protocols import TrainableModel
from steelyard.curation.filtering_arms import (
    ARMS,
    CEILING,
    HUMAN,
    ORACLE,
    REFERENCES,
    Columns,
    Split,
    arm_pairs,
    splits,
)
from steelyard.io.progress import bar
from steelyard.stages.filters.evidence import Study
from steelyard.stages.filters.settings import Config
from steelyard.stages.filters.teaching import asked_of, margins_by, taught_by
from steelyard.statistics.unit_bootstrap import selection_shares


class Trial:
    """The arms of one share of people's prompts; sums over all splits."""

    def __init__(self, model: TrainableModel, study: Study, share: float) -> None:
        self.model, self.study, self.share = model, study, share
        self.arms = tuple(name for name in ARMS if name != ORACLE or study.has_key.any())
        self.right: Floats = np.zeros((len(study.human.case), len(self.arms)))
        self.num_pairs: dict[str, list[int]] = defaultdict(list)
        self.num_prompts: list[int] = []

    def add(self, split: Split, seed: int) -> None:
        """Train every arm of the split and count which test pairs it gets right; a tied score is wrong."""
        study = self.study
        tested = np.isin(study.prompt[study.human.case], split.test)
        pairs, models = self._arms(split, seed)
        self.num_prompts.append(len(split.human))
        for column, name in enumerate(self.arms):
            model = models.get(name) or taught_by(self.model, study, pairs[name])
            margin = margins_by(model, study, study.human.where(tested))
            self.right[tested, column] += margin > 0
            self.num_pairs[name].append(len(pairs[name].case))

    def _arms(self, split: Split, seed: int) -> tuple[dict[str, Columns], dict[str, TrainableModel]]:
        study = self.study
        owner = study.prompt[study.human.case]
        human = study.human.where(study.trains & np.isin(owner, split.human))
        if not len(human.case):
            raise EvidenceError(
                f"people prefer no answer on any of the {len(split.human)} prompts of a share of {self.share}",
                do="take larger --set human_shares, or --set human_shares=[] for precision alone",
            )
        ceiling = study.human.where(study.trains & np.isin(owner, np.concatenate([split.human, split.judged])))
        chosen = np.isin(study.prompt[study.judged.case], split.judged)
        supervisor = taught_by(self.model, study, human)
        asked = asked_of(supervisor, study, chosen)
        known = study.has_key[chosen], study.is_right[chosen]
        names = (seed, "random arm", split.repetition, split.fold)
        pairs = arm_pairs(human, study.judged.where(chosen), asked, known, names=names)
        # The supervisor is the arm that has learnt from people only.
        return pairs | {CEILING: ceiling}, {HUMAN: supervisor}

    def record(self, repetitions: int, *, seed: int) -> dict[str, Any]:
        """The accuracy of each arm and its paired differences; intervals over prompts, repetitions averaged."""
        owner = self.study.prompt[self.study.human.case]
        found = selection_shares(owner, np.ones_like(self.right), self.right / repetitions, seed=seed)
        rows = []
        for column, name in enumerate(self.arms):
            row: dict[str, Any] = {"arm": name, "num_pairs": float(np.mean(self.num_pairs[name]))}
            row["accuracy"] = found.of(column).record()
            for other in REFERENCES:
                row[f"minus {other}"] = found.minus(column, self.arms.index(other)).record()
            rows.append(row)
        return {"human_share": self.share, "human_prompts": float(np.mean(self.num_prompts)), "arms": rows}


def downstream(model: TrainableModel, study: Study, config: Config) -> list[dict[str, Any]]:
    """A record a share of people's prompts, each with every arm."""
    num_prompts = int(study.prompt.max()) + 1
    if config.human_shares and num_prompts < 2 * config.folds:
        raise EvidenceError(
            f"{num_prompts} different prompts are too few for {config.folds} folds",
            do="bring more, or --set human_shares=[] for precision alone",
        )
    total = len(config.human_shares) * config.repetitions * config.folds
    found = []
    with bar("training arms", total) as open_bar:
        for share in sorted(config.human_shares):
            trial = Trial(model, study, share)
            for split in splits(num_prompts, config.folds, share, config.repetitions, seed=config.seed):
                trial.add(split, config.seed)
                open_bar.advance()
            found.append(trial.record(config.repetitions, seed=config.seed))
    return found
