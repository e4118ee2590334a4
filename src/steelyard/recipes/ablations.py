"""Ablations as recipes: the arms of CHEEMS, Table 4, any training files (Table 3), and shares of one (Figure 6).

Every arm trains the same backbone by the same settings on other data, once a seed, and is evaluated on one bench.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.errors import ConfigError
from steelyard.core.types import Meta
from steelyard.recipes.experiments import (
    Experiment,
    Tables,
    percent,
    read_experiment,
    share_of,
    trained_and_evaluated,
)
from steelyard.recipes.recipes import Recipe, build_recipe

HUMAN, LLM = "human", "llm"


class Ablation(Experiment, frozen=True, kw_only=True):
    """What an ablation's file says. Files are case files, looked for beside it.

    ``human`` and ``llm`` hold judgments on different prompts: they make the six arms of Table 4. ``training`` names
    further arms, a file each. ``scaling``: shares of the prompts of the arm ``scaled`` to train on. ``supervisors``:
    kinds of model that filter the LLM's verdicts instead of the human RM, as controls (``longer``).
    The tables ``resolve``, ``train``, ``evaluate``, ``supervise`` and ``debias`` are settings of these stages.
    """

    model: str
    human: str | None = None
    llm: str | None = None
    training: dict[str, str] = msgspec.field(default_factory=dict)
    scaling: tuple[float, ...] = ()
    scaled: str = HUMAN
    supervisors: tuple[str, ...] = ()
    resolve: Meta = msgspec.field(default_factory=dict)
    supervise: Meta = msgspec.field(default_factory=dict)
    debias: Meta = msgspec.field(default_factory=dict)


def read_ablation(path: Path, settings: dict[str, Any] | None = None) -> Ablation:
    """The ablation in a file; ``settings`` stand over its own. Raises ConfigError for what cannot be compared."""
    found = read_experiment(Ablation, path, settings)
    if (found.human is None) != (found.llm is None):
        raise ConfigError("human without llm, or llm without human", where=str(path), do="give both, or training files")
    if found.human is None and len(found.training) < 2 and not found.scaling:
        raise ConfigError("nothing to compare", where=str(path), do="give human and llm, or two training files")
    return found


def arms_of(ablation: Ablation) -> tuple[str, ...]:
    """The names of the arms, in the order of the table."""
    table_4 = (HUMAN, LLM, "llm_debiased", "llm_supervised", "llm_both", "all") if ablation.human else ()
    controls = tuple(f"llm_supervised_by_{name}" for name in ablation.supervisors) if ablation.human else ()
    scaled = tuple(_scaled_name(ablation.scaled, share) for share in ablation.scaling)
    return (*table_4, *controls, *ablation.training, *scaled)


def ablation_recipe(ablation: Ablation, path: Path) -> Recipe:
    """The whole ablation as one recipe: data once, or once a seed where they depend on it, then a model an arm."""
    stages: Tables = {}
    if ablation.human is not None:
        for name, file in ((HUMAN, ablation.human), (LLM, ablation.llm)):
            stages[f"{name}.resolved"] = {"verb": "resolve", "cases": file, "config": ablation.resolve}
        stages["llm.debiased"] = _debias("llm.resolved/cases.jsonl", ablation)
    for seed in ablation.seeds:
        for arm, (tables, cases) in _arms(ablation, seed):
            own = trained_and_evaluated(arm, seed, cases=cases, model=ablation.model, experiment=ablation)
            stages |= tables | own
    return build_recipe({"about": ablation.about, "stages": stages}, path)


def _arms(ablation: Ablation, seed: int) -> Iterator[tuple[str, tuple[Tables, str]]]:
    """Each arm with the stages that make its training cases, and where these lie."""
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
            # A kind of model needs no seed, but a name of its own keeps the stages of seeds apart.
            yield f"llm_supervised_by_{name}", _supervised(f"supervised_by_{name}", name, seed, ablation)
    for name, file in ablation.training.items():
        yield name, ({}, file)
    for share in ablation.scaling:
        if ablation.scaled not in files:
            raise ConfigError(
                f"no file of {ablation.scaled!r} to take shares of", where="scaled", allowed=", ".join(files)
            )
        name = _scaled_name(ablation.scaled, share)
        yield name, share_of(files[ablation.scaled], share, seed, name=name)


def _supervised(name: str, supervisor: str, seed: int, ablation: Ablation) -> tuple[Tables, str]:
    stage = f"llm.{seed}.{name}"
    table = {
        "verb": "supervise",
        "cases": "llm.resolved/cases.jsonl",
        "model": supervisor,
        "config": ablation.supervise,
    }
    return {stage: table}, f"{stage}/cases.jsonl"


def _debias(cases: str, ablation: Ablation) -> dict[str, Any]:
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
