"""Trials of filters: is a model trained on filtered verdicts more accurate? Every arm trained and tested, repeatedly.

Every arm has the people's pairs of the same few prompts. The arms differ in their pairs of the other prompts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.core.checks import checked_scores
from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Booleans, Floats, Integers, generator
from steelyard.core.protocols import TrainableModel
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Case, Pair, Record
from steelyard.curation.filter_study import (
    AGREES,
    LONGER,
    NOT_AGAINST,
    Config,
    PairColumns,
    PrecisionStudy,
    Study,
    VerdictMargins,
    apply_filters,
    draw_random,
)
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import selection_shares

HUMAN, ALL, FILTERED, RANDOM, ORACLE, SELF, CEILING = (
    "human only",
    "+ all verdicts",
    "+ agreeing",
    "+ random as many",
    "+ right only (oracle)",
    "+ own labels (self-training)",
    "+ people's labels (ceiling)",
)
BY_LENGTH, NOT_CONFIDENT = f"+ {LONGER}", f"+ {NOT_AGAINST}"
ARMS = (HUMAN, ALL, FILTERED, RANDOM, BY_LENGTH, NOT_CONFIDENT, ORACLE, SELF, CEILING)


class Split(NamedTuple):
    """The numbers of the prompts that people label, that the judge labels, and that models are tested on."""

    repetition: int
    fold: int
    human: Integers
    judged: Integers
    test: Integers


class ArmAccuracy(Record, frozen=True, kw_only=True):
    """The accuracy of one arm, and its paired differences from the reference arms."""

    arm: str
    num_pairs: float
    accuracy: Estimate
    minus_human: Estimate = msgspec.field(name=f"minus {HUMAN}")
    minus_all: Estimate = msgspec.field(name=f"minus {ALL}")
    minus_random: Estimate = msgspec.field(name=f"minus {RANDOM}")


class ShareTrial(Record, frozen=True, kw_only=True):
    """The arms of one share of people's prompts; ``human_prompts`` is their mean number."""

    human_share: float
    human_prompts: float
    arms: tuple[ArmAccuracy, ...]


def splits(num_prompts: int, num_folds: int, share: float, repetitions: int, *, seed: int) -> Iterator[Split]:
    """Yield splits that test every prompt once per repetition; people label the share of the others, at least two.

    The draws are nested: the human prompts of a smaller share are among those of a larger one.
    """
    for repetition in range(repetitions):
        order = generator(seed, "folds", repetition).permutation(num_prompts)
        for fold in range(num_folds):
            is_test = np.arange(num_prompts) % num_folds == fold
            rest = generator(seed, "human prompts", repetition, fold).permutation(order[~is_test])
            num_human = max(2, round(share * len(rest)))
            yield Split(repetition, fold, rest[:num_human], rest[num_human:], order[is_test])


def arm_pairs(
    human: PairColumns,
    judged: PairColumns,
    verdicts: VerdictMargins,
    known: tuple[Booleans, Booleans],
    *,
    names: Sequence[str | int],
) -> dict[str, PairColumns]:
    """Return the training pairs of each arm but the ceiling.

    ``known``: for each judged pair whether people have a majority on it, and whether the verdict agrees with them.
    Where they have none the oracle is absent. ``names`` seed the random arm.
    """
    filters = apply_filters(verdicts, (0.0,))
    has_key, is_right = known
    agrees = filters[AGREES]
    arms = {
        HUMAN: judged.where(np.zeros(len(judged.case), bool)),
        ALL: judged,
        FILTERED: judged.where(agrees),
        # The control: as many verdicts, so that a difference is not that of the amount of data.
        RANDOM: judged.where(draw_random(int(agrees.sum()), len(agrees), *names)),
        BY_LENGTH: judged.where(filters[LONGER]),
        NOT_CONFIDENT: judged.where(filters[NOT_AGAINST]),
        SELF: judged.reversed_where(verdicts.margin < 0).where(np.abs(verdicts.margin) > 0),
    }
    if has_key.any():
        arms[ORACLE] = judged.where(has_key & is_right)
    return {name: human.plus(pairs) for name, pairs in arms.items()}


def fit_pairs(model: TrainableModel, study: Study, pairs: PairColumns) -> TrainableModel:
    """Return the model trained on these pairs alone."""
    listed: dict[int, list[Pair]] = {}
    for number, better, worse in zip(*(column.tolist() for column in pairs), strict=True):
        responses = study.cases[number].responses
        listed.setdefault(number, []).append(Pair(better=responses[better].id, worse=responses[worse].id))
    return model.fit(
        [
            msgspec.structs.replace(study.cases[number], ranking=None, pairs=tuple(of_case))
            for number, of_case in sorted(listed.items())
        ]
    )


def margins_of_pairs(model: TrainableModel, study: Study, pairs: PairColumns) -> Floats:
    """Return for each pair the better response's score minus the worse one's; NaN where a score is missing."""
    numbers = np.unique(pairs.case).tolist()
    scores = dict(zip(numbers, _scores(model, [study.cases[number] for number in numbers]), strict=True))
    return np.array(
        [scores[case][better] - scores[case][worse] for case, better, worse in zip(*pairs, strict=True)], np.float64
    )


def _scores(model: TrainableModel, cases: Sequence[Case]) -> Iterator[list[float]]:
    for case, line in zip(cases, model.score(cases), strict=True):
        scores = checked_scores(case, line, by="the model").scores
        values = [scores[response.id] for response in case.responses]
        yield [np.nan if value is None else value for value in values]


def verdict_margins(model: TrainableModel, study: Study, chosen: np.ndarray) -> VerdictMargins:
    """Return the model's margins for the chosen verdicts of the judge."""
    pairs = study.judged.where(chosen)
    return VerdictMargins(study.prompt[pairs.case], margins_of_pairs(model, study, pairs), study.longer[chosen])


def run_trials(
    model: TrainableModel, study: Study, config: Config, advance: Callable[[], None] = lambda: None
) -> tuple[ShareTrial, ...]:
    """Return a trial of every arm for each share of people's prompts; ``advance`` is called after each split."""
    num_prompts = int(study.prompt.max()) + 1
    if config.human_shares and num_prompts < 2 * config.folds:
        raise EvidenceError(
            f"{num_prompts} different prompts are too few for {config.folds} folds",
            do=Advice("bring more, or ", Remedy("human_shares", []), " for precision alone"),
        )
    trials = []
    for share in sorted(config.human_shares):
        trial = _Trial(model, study, share)
        for split in splits(num_prompts, config.folds, share, config.repetitions, seed=config.seed):
            trial.add(split, config.seed)
            advance()
        trials.append(trial.accuracy(config.repetitions, seed=config.seed))
    return tuple(trials)


class _Trial:
    """Sums over all splits of one share of people's prompts."""

    def __init__(self, model: TrainableModel, study: Study, share: float) -> None:
        self.model, self.study, self.share = model, study, share
        self.arms = tuple(name for name in ARMS if name != ORACLE or study.has_key.any())
        self.right: Floats = np.zeros((len(study.human.case), len(self.arms)))
        self.num_pairs: dict[str, list[int]] = defaultdict(list)
        self.num_prompts: list[int] = []

    def add(self, split: Split, seed: int) -> None:
        """Train every arm of the split and count the test pairs that it gets right; a tied score is wrong."""
        study = self.study
        is_tested = np.isin(study.prompt[study.human.case], split.test)
        pairs, models = self._arms(split, seed)
        self.num_prompts.append(len(split.human))
        for column, name in enumerate(self.arms):
            model = models.get(name) or fit_pairs(self.model, study, pairs[name])
            margin = margins_of_pairs(model, study, study.human.where(is_tested))
            self.right[is_tested, column] += margin > 0
            self.num_pairs[name].append(len(pairs[name].case))

    def _arms(self, split: Split, seed: int) -> tuple[dict[str, PairColumns], dict[str, TrainableModel]]:
        study = self.study
        prompt = study.prompt[study.human.case]
        human = study.human.where(study.trains & np.isin(prompt, split.human))
        if not len(human.case):
            raise EvidenceError(
                f"people prefer no answer on any of the {len(split.human)} prompts of a share of {self.share}",
                do=Advice(
                    "take larger ", Remedy("human_shares"), ", or ", Remedy("human_shares", []), " for precision alone"
                ),
            )
        ceiling = study.human.where(study.trains & np.isin(prompt, np.concatenate([split.human, split.judged])))
        chosen = np.isin(study.prompt[study.judged.case], split.judged)
        supervisor = fit_pairs(self.model, study, human)
        verdicts = verdict_margins(supervisor, study, chosen)
        known = study.has_key[chosen], study.is_right[chosen]
        names = (seed, "random arm", split.repetition, split.fold)
        pairs = arm_pairs(human, study.judged.where(chosen), verdicts, known, names=names)
        # The supervisor is the arm trained on people's pairs alone.
        return pairs | {CEILING: ceiling}, {HUMAN: supervisor}

    def accuracy(self, repetitions: int, *, seed: int) -> ShareTrial:
        """Return the accuracy of each arm and its differences; intervals over prompts, repetitions averaged."""
        prompt = self.study.prompt[self.study.human.case]
        # Every pair is tested once in each repetition: right / repetitions is its mean accuracy.
        accuracy = selection_shares(prompt, np.ones_like(self.right), self.right / repetitions, seed=seed)
        human, every, random = (self.arms.index(name) for name in (HUMAN, ALL, RANDOM))
        arms = tuple(
            ArmAccuracy(
                arm=name,
                num_pairs=float(np.mean(self.num_pairs[name])),
                accuracy=accuracy.of(column),
                minus_human=accuracy.minus(column, human),
                minus_all=accuracy.minus(column, every),
                minus_random=accuracy.minus(column, random),
            )
            for column, name in enumerate(self.arms)
        )
        return ShareTrial(human_share=self.share, human_prompts=float(np.mean(self.num_prompts)), arms=arms)


class FilterStudySummary(Record, frozen=True, kw_only=True):
    """The study: precision by coverage, and the trials of each share of people's prompts.

    ``precision`` is null where people have no majority on any pair that the judge compared.
    """

    judge: str
    model: str
    num_prompts: int
    num_human_pairs: int
    num_human_pairs_trained_on: int
    precision: PrecisionStudy | None
    downstream: tuple[ShareTrial, ...]


class CheckedVerdict(Record, frozen=True, kw_only=True):
    """A line of ``verdicts.jsonl``: a verdict that people's majority can check; the margin is null without a score."""

    prompt: str
    language: str | None
    preferred: str
    other: str
    margin: float | None
    is_right: bool
