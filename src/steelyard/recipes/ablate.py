"""Ablations: the arms of CHEEMS, Table 4, any training files (Table 3), and shares of one (Figure 6), as one recipe.

Every arm trains the same backbone with the same settings on other data, once per seed, and is evaluated on one bench;
then the arms are compared on the same prompts.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.errors import ConfigError
from steelyard.core.types import JsonObject, Meta
from steelyard.io.atomic import write_text
from steelyard.recipes.experiments import (
    Arm,
    ArmDifference,
    Experiment,
    MeasuredArms,
    Tables,
    compare_arms,
    draw_share,
    percent,
    read_arms,
    read_experiment,
    trained_and_evaluated,
    write_table,
)
from steelyard.recipes.recipe import Recipe, build_recipe
from steelyard.recipes.run import run

HUMAN, LLM = "human", "llm"
TABLE_FILE, PLOT_FILE = "ablation.json", "ablation.svg"


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
    """Kinds of model that filter the LLM's verdicts instead of the human reward model, as controls."""
    resolve: Meta = msgspec.field(default_factory=dict)
    """Settings of `resolve`."""
    supervise: Meta = msgspec.field(default_factory=dict)
    """Settings of `supervise`."""
    debias: Meta = msgspec.field(default_factory=dict)
    """Settings of `debias`."""


def read_ablation(path: Path, settings: JsonObject | None = None) -> Ablation:
    """Return the ablation of a file; ``settings`` override its own. Raises ConfigError without arms to compare."""
    ablation = read_experiment(Ablation, path, settings)
    if (ablation.human is None) != (ablation.llm is None):
        raise ConfigError("human without llm, or llm without human", where=str(path), do="give both, or training files")
    if ablation.human is None and len(ablation.training) < 2 and not ablation.scaling:
        raise ConfigError("nothing to compare", where=str(path), do="give human and llm, or two training files")
    return ablation


def arms_of(ablation: Ablation) -> tuple[str, ...]:
    """Return the names of the arms, in the order of the table."""
    table_4 = (HUMAN, LLM, "llm_debiased", "llm_supervised", "llm_both", "all") if ablation.human else ()
    controls = tuple(f"llm_supervised_by_{name}" for name in ablation.supervisors) if ablation.human else ()
    scaled = tuple(_scaled_name(ablation.scaled, share) for share in ablation.scaling)
    return (*table_4, *controls, *ablation.training, *scaled)


def ablation_recipe(ablation: Ablation, path: Path) -> Recipe:
    """Return the ablation as one recipe: data once, or once per seed where they depend on it, then the models."""
    stages: Tables = {}
    if ablation.human is not None:
        for name, file in ((HUMAN, ablation.human), (LLM, ablation.llm)):
            stages[f"{name}.resolved"] = {"verb": "resolve", "cases": file, "config": ablation.resolve}
        stages["llm.debiased"] = _debias("llm.resolved/cases.jsonl", ablation)
    for seed in ablation.seeds:
        for arm, (tables, cases) in _arms(ablation, seed):
            stages |= tables
            stages |= trained_and_evaluated(arm, seed, cases=cases, model=ablation.model, experiment=ablation)
    return build_recipe({"about": ablation.about, "stages": stages}, path)


def _arms(ablation: Ablation, seed: int) -> Iterator[tuple[str, tuple[Tables, str]]]:
    """Yield each arm with the stages that make its training cases, and their file."""
    files = dict(ablation.training)
    if ablation.human is not None:
        files |= {HUMAN: "human.resolved/cases.jsonl", LLM: "llm.resolved/cases.jsonl"}
        yield HUMAN, ({}, files[HUMAN])
        yield LLM, ({}, files[LLM])
        yield "llm_debiased", ({}, "llm.debiased/cases.jsonl")
        yield "llm_supervised", _supervised("supervised", f"{HUMAN}.{seed}.model", seed, ablation)
        yield "llm_both", _both(seed, ablation)
        yield "all", _all(seed)
        for name in ablation.supervisors:
            # A kind of model has no seed; its name keeps the stages of different seeds apart.
            yield f"llm_supervised_by_{name}", _supervised(f"supervised_by_{name}", name, seed, ablation)
    for name, file in ablation.training.items():
        yield name, ({}, file)
    for share in ablation.scaling:
        if ablation.scaled not in files:
            raise ConfigError(
                f"no file of {ablation.scaled!r} to take shares of", where="scaled", allowed=", ".join(files)
            )
        name = _scaled_name(ablation.scaled, share)
        yield name, draw_share(files[ablation.scaled], share, seed, name=name)


def _supervised(name: str, supervisor: str, seed: int, ablation: Ablation) -> tuple[Tables, str]:
    stage = f"llm.{seed}.{name}"
    table = {
        "verb": "supervise",
        "cases": "llm.resolved/cases.jsonl",
        "model": supervisor,
        "config": ablation.supervise,
    }
    return {stage: table}, f"{stage}/cases.jsonl"


def _debias(cases: str, ablation: Ablation) -> JsonObject:
    return {"verb": "debias", "cases": cases, "config": ablation.debias}


def _both(seed: int, ablation: Ablation) -> tuple[Tables, str]:
    stage = f"llm.{seed}.both"
    return {stage: _debias(f"llm.{seed}.supervised/cases.jsonl", ablation)}, f"{stage}/cases.jsonl"


def _all(seed: int) -> tuple[Tables, str]:
    stage = f"all.{seed}.merged"
    files = ["human.resolved/cases.jsonl", f"llm.{seed}.both/cases.jsonl"]
    return {stage: {"verb": "merge", "files": files}}, f"{stage}/cases.jsonl"


def _scaled_name(name: str, share: float) -> str:
    return f"{name}_{percent(share)}"


class AblationResult(NamedTuple):
    """The arms and their differences from the references."""

    arms: tuple[Arm, ...]
    differences: tuple[ArmDifference, ...]

    def record(self) -> JsonObject:
        """Return the table as it is written."""
        return {
            "arms": msgspec.to_builtins(self.arms),
            "differences": [difference.record() for difference in self.differences],
            "correction": "Holm, over all differences here",
        }


def ablate(ablation: Ablation, path: Path, out: Path) -> AblationResult:
    """Train and evaluate every arm with every seed, and write ``ablation.json`` and ``ablation.svg``.

    Finished stages are skipped: after a kill, or with another seed or arm, the run continues in the same folder. Raises
    the errors of the stages.
    """
    run(ablation_recipe(ablation, path), out)
    measured = read_arms(arms_of(ablation), ablation.seeds, out)
    result = AblationResult(measured.arms, compare_arms(measured, _pairs(measured, references(ablation))))
    write_table(result.record(), out / TABLE_FILE)
    write_text(out / PLOT_FILE, _draw(result))
    return result


def references(ablation: Ablation) -> tuple[str, ...]:
    """Return the arms that every other is compared with: the human and the LLM arm, else the first."""
    return (HUMAN, LLM) if ablation.human is not None else arms_of(ablation)[:1]


def _pairs(measured: MeasuredArms, references: Sequence[str]) -> list[tuple[str, str]]:
    """Return each arm with each reference; two references are compared once."""
    compared_already = {(first, second) for index, first in enumerate(references) for second in references[index + 1 :]}
    return [
        (arm, reference)
        for reference in references
        for arm in measured.statistics
        if arm != reference and (reference, arm) not in compared_already
    ]


def _draw(result: AblationResult) -> str:
    import vl_convert

    from steelyard.report.study_figures import ablation_figure

    rows = [(arm.name, arm.accuracy, arm.accuracy_by_seed) for arm in result.arms]
    return vl_convert.vegalite_to_svg(ablation_figure(rows))
