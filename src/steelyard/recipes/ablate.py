"""Ablations: the arms of CHEEMS, Table 4, any training files (Table 3), and shares of one (Figure 6), as one recipe.

Every arm trains the same backbone with the same settings on other data, once per seed, and is evaluated on each kind of
bench; then the arms are compared on the same prompts.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import msgspec

from steelyard.core.errors import ConfigError
from steelyard.core.plugins import load
from steelyard.core.types import JsonObject, Meta
from steelyard.evaluation.experiments import AblationSummary, Arm, ArmDifference
from steelyard.ranking.pairs import PairChoice
from steelyard.recipes.experiments import (
    Experiment,
    ExperimentKind,
    Tables,
    draw_share,
    model_name,
    percent,
    trained_and_evaluated,
)
from steelyard.recipes.measured_arms import (
    MeasuredArms,
    arms_on_bench,
    compare_arms,
    corrected,
    on_bench,
)

HUMAN, LLM, SUPERVISED = "human", "llm", "llm_supervised"
_AS_MANY = "llm_as_many_by"
_CLOSEST = "closest"
"""The control that is a policy of `supervise` and no kind of model."""
_VARIANTS = (f"{SUPERVISED}_", f"{_AS_MANY}_")
"""The beginnings of arms whose data differ from those of the supervised arm by supervisor or pairs alone."""
_HUMAN_CASES, _LLM_CASES = "human.resolved/cases.jsonl", "llm.resolved/cases.jsonl"


class Ablation(Experiment, frozen=True, kw_only=True):
    """An ablation's file. Files are case files, relative to it.

    ``human`` and ``llm`` hold judgments on different prompts: they make the six arms of CHEEMS, Table 4.
    """

    model: str
    """The backbone: a folder beside the file, or a name on the hub."""
    human: str | None = None
    """The cases with judgments of people; with llm, the arms of CHEEMS, Table 4."""
    llm: str | None = None
    """The cases with judgments of an LLM, on other prompts."""
    training: dict[str, str] = msgspec.field(default_factory=dict)
    """Further arms by name: a case file each."""
    scaling: tuple[float, ...] = ()
    """The shares of the prompts of one arm to train on."""
    scaled: str = HUMAN
    """The arm of the shares."""
    supervisors: tuple[str, ...] = ()
    """Controls instead of the human reward model: kinds of model, or closest, which keeps the closest lengths."""
    equal_sizes: bool = False
    """Make each of the supervisors a second control, which keeps as many verdicts as the human reward model."""
    pair_rules: tuple[PairChoice, ...] = ()
    """Further rules for the pairs of the LLM's verdicts that the human reward model keeps: an arm each."""
    resolve: Meta = msgspec.field(default_factory=dict)
    """Settings of `resolve`."""
    supervise: Meta = msgspec.field(default_factory=dict)
    """Settings of `supervise`."""
    debias: Meta = msgspec.field(default_factory=dict)
    """Settings of `debias`."""


def _check(ablation: Ablation, where: str) -> None:
    if (ablation.human is None) != (ablation.llm is None):
        raise ConfigError("human without llm, or llm without human", where=where, do="give both, or training files")
    of_table_4 = {
        "supervisors": ablation.supervisors,
        "equal_sizes": ablation.equal_sizes,
        "pair_rules": ablation.pair_rules,
    }
    if ablation.human is None and (dependent := [name for name, value in of_table_4.items() if value]):
        raise ConfigError(
            f"{', '.join(dependent)} without human and llm", where=where, do="give both files, whose arms they are"
        )
    if ablation.equal_sizes and not ablation.supervisors:
        raise ConfigError(
            "equal_sizes without supervisors", where=where, do='name the controls: supervisors = ["random"]'
        )
    if _CLOSEST in ablation.supervisors and not ablation.equal_sizes:
        problem = f"the control {_CLOSEST} has no size of its own"
        raise ConfigError(problem, where=where, do="let it keep as many as the human model: equal_sizes = true")
    if ablation.human is None and len(ablation.training) < 2 and not ablation.scaling:
        raise ConfigError("nothing to compare", where=where, do="give human and llm, or two training files")


class _TrainingData(NamedTuple):
    """The training cases of an arm and a seed, the stages that make them, and settings of the training."""

    arm: str
    cases: str
    stages: Tables
    settings: JsonObject | None = None


def arms_of(ablation: Ablation) -> tuple[str, ...]:
    """Return the names of the arms, in the order of the table."""
    return tuple(data.arm for data in _training_data(ablation, seed=0))


def _stages(ablation: Ablation) -> Tables:
    """Return the stages of the recipe: data once, or once per seed where they depend on it, then the models."""
    stages: Tables = {}
    if ablation.human is not None:
        for name, file in ((HUMAN, ablation.human), (LLM, ablation.llm)):
            stages[f"{name}.resolved"] = {"verb": "resolve", "cases": file, "config": ablation.resolve}
        stages["llm.debiased"] = {"verb": "debias", "cases": _LLM_CASES, "config": ablation.debias}
    for seed in ablation.seeds:
        for data in _training_data(ablation, seed):
            stages |= data.stages
            stages |= trained_and_evaluated(
                data.arm, seed, cases=data.cases, model=ablation.model, experiment=ablation, settings=data.settings
            )
    return stages


def _training_data(ablation: Ablation, seed: int) -> Iterator[_TrainingData]:
    files = dict(ablation.training)
    if ablation.human is not None:
        files |= {HUMAN: _HUMAN_CASES, LLM: _LLM_CASES}
        yield from _table_4(ablation, seed)
    for name, file in ablation.training.items():
        yield _TrainingData(name, file, {})
    for share in ablation.scaling:
        if ablation.scaled not in files:
            problem = f"no file of {ablation.scaled!r} to take shares of"
            raise ConfigError(problem, where="scaled", allowed=", ".join(files))
        name = f"{ablation.scaled}_{percent(share)}"
        stages, cases = draw_share(files[ablation.scaled], share, seed, name=name)
        yield _TrainingData(name, cases, stages)


def _table_4(ablation: Ablation, seed: int) -> Iterator[_TrainingData]:
    """Yield the data of CHEEMS, Table 4, and those of the controls."""
    supervised, both, merged = f"llm.{seed}.supervised", f"llm.{seed}.both", f"all.{seed}.merged"
    supervised_cases = f"{supervised}/cases.jsonl"
    debias = {"verb": "debias", "cases": supervised_cases, "config": ablation.debias}
    merge = {"verb": "merge", "files": [_HUMAN_CASES, f"{both}/cases.jsonl"]}

    def supervise(supervisor: str, **parts: Any) -> JsonObject:
        return {"verb": "supervise", "cases": _LLM_CASES, "model": supervisor, "config": ablation.supervise} | parts

    yield _TrainingData(HUMAN, _HUMAN_CASES, {})
    yield _TrainingData(LLM, _LLM_CASES, {})
    yield _TrainingData("llm_debiased", "llm.debiased/cases.jsonl", {})
    yield _TrainingData(SUPERVISED, supervised_cases, {supervised: supervise(model_name(HUMAN, seed))})
    yield _TrainingData("llm_both", f"{both}/cases.jsonl", {both: debias})
    yield _TrainingData("all", f"{merged}/cases.jsonl", {merged: merge})
    for name in ablation.supervisors:
        if name == _CLOSEST:
            stage = f"llm.{seed}.as_many_by_{name}"
            table = supervise("longer", config=ablation.supervise | {"policy": name}, as_many_as=supervised_cases)
            yield _TrainingData(f"{_AS_MANY}_{name}", f"{stage}/cases.jsonl", {stage: table})
            continue
        # Draws of a control differ from seed to seed; other kinds of model have no seed.
        has_seed = "seed" in load("models", name).Config.__struct_fields__
        config = ablation.supervise | ({"model": {"seed": seed}} if has_seed else {})
        stage = f"llm.{seed}.supervised_by_{name}"
        yield _TrainingData(f"{SUPERVISED}_by_{name}", f"{stage}/cases.jsonl", {stage: supervise(name, config=config)})
        if ablation.equal_sizes:
            stage = f"llm.{seed}.as_many_by_{name}"
            table = supervise(name, config=config, as_many_as=supervised_cases)
            yield _TrainingData(f"{_AS_MANY}_{name}", f"{stage}/cases.jsonl", {stage: table})
    for rule in ablation.pair_rules:
        yield _TrainingData(f"{SUPERVISED}_{rule}", supervised_cases, {}, {"pairs": rule})


class AblationResult(NamedTuple):
    """The arms and their differences from the references."""

    arms: tuple[Arm, ...]
    differences: tuple[ArmDifference, ...]

    def record(self) -> AblationSummary:
        """Return the table as it is written."""
        correction = "Holm, over all differences of a measure here"
        return AblationSummary(arms=self.arms, differences=self.differences, correction=correction)

    def figure(self) -> JsonObject:
        """Return the plot of the arms with their seeds."""
        from steelyard.report.study_figures import ablation_figure

        return ablation_figure([(arm.name, arm.accuracy, arm.accuracy_by_seed) for arm in self.arms])

    @classmethod
    def join(cls, by_bench: Mapping[str, Self]) -> Self:
        """Return the results on several kinds of bench as one, p-values corrected over all."""
        arms = [arm for bench, result in by_bench.items() for arm in arms_on_bench(result.arms, bench)]
        differences = [each for bench, result in by_bench.items() for each in on_bench(result.differences, bench)]
        return cls(tuple(arms), corrected(differences))


def _compare(ablation: Ablation, measured: MeasuredArms) -> AblationResult:
    """Compare every arm with the human and the LLM arm, or with the first; two references are compared once.

    The arm that the human reward model filters is compared with its controls too, and with other rules for its pairs.
    """
    references = (HUMAN, LLM) if ablation.human is not None else arms_of(ablation)[:1]
    pairs = [
        (arm, reference)
        for index, reference in enumerate(references)
        for arm in measured.statistics
        if arm not in references[index:]
    ]
    pairs += [(SUPERVISED, arm) for arm in measured.statistics if arm.startswith(_VARIANTS)]
    return AblationResult(measured.arms, compare_arms(measured, pairs))


EXPERIMENT = ExperimentKind("ablation", "ablate", Ablation, AblationSummary, _check, arms_of, _stages, _compare)
