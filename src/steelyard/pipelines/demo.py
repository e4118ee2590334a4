"""The demo: the whole path on the built-in corpus, from simulated verdicts to a trained model and a page to read."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Case, Run
from steelyard.files.cases import read_cases
from steelyard.files.talk import say
from steelyard.methods.ranking.pairs import pairs_of
from steelyard.stages.backbone import Config as BackboneConfig
from steelyard.stages.backbone import backbone
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.report import Config as ReportConfig
from steelyard.stages.report import report
from steelyard.stages.resolve import Config as ResolveConfig
from steelyard.stages.resolve import resolve
from steelyard.stages.simulate import Config as SimulateConfig
from steelyard.stages.simulate import simulate
from steelyard.stages.train import Config as TrainConfig
from steelyard.stages.train import train

FOLDERS = ("simulated", "resolved", "resolved_llm", "backbone", "model", "evaluated", "kinds", "report")


class Config(BaseConfig, frozen=True):
    """The settings of every stage. Those of the training are for a tiny network that begins from nothing."""

    simulate: SimulateConfig = SimulateConfig()
    resolve: ResolveConfig = ResolveConfig()
    backbone: BackboneConfig = BackboneConfig()
    train: TrainConfig = TrainConfig(epochs=5, learning_rate=1e-3, prompts_per_step=4)
    evaluate: EvaluateConfig = EvaluateConfig()
    report: ReportConfig = ReportConfig(title="Steelyard demo (simulated data)")


_DEFAULT = Config()


class Share(NamedTuple):
    """So many of ``total``."""

    number: int
    total: int


class Demo(NamedTuple):
    """What the demo did: the run in each of `FOLDERS`, and where the page is.

    ``right_by_key``: of the pairs that the resolved rankings order, those ordered as in the answer key.
    """

    runs: dict[str, Run]
    right_by_key: Share
    page: Path


def with_seed(config: Config, seed: int) -> Config:
    """The same settings with another seed in every stage that draws."""
    return msgspec.structs.replace(
        config,
        simulate=msgspec.structs.replace(config.simulate, seed=seed),
        backbone=msgspec.structs.replace(config.backbone, seed=seed),
        train=msgspec.structs.replace(config.train, seed=seed),
        evaluate=msgspec.structs.replace(config.evaluate, seed=seed),
    )


def demo(out: Path, config: Config = _DEFAULT) -> Demo:
    """Simulate, resolve, make a backbone, train, evaluate beside baselines, report; finished stages are skipped.

    Everything lies under ``out``, a folder a stage. ``kinds`` is the evaluation by kind of worse answer; the verdicts
    of the LLM are resolved for their conflict ratio alone, nothing is trained on them. Raises OutputError where a
    folder holds a run of other settings.
    """
    folders = {name: out / name for name in FOLDERS}
    simulated, ranked = folders["simulated"], folders["resolved"] / "cases.jsonl"
    model = str(folders["model"])
    runs: dict[str, Run] = {}
    say("1/6 simulating answers and verdicts")
    runs["simulated"] = simulate(simulated, config.simulate)
    say("2/6 resolving the verdicts into rankings")
    for name, file in (("resolved", "cases.jsonl"), ("resolved_llm", "llm.jsonl")):
        runs[name] = resolve(simulated / file, folders[name], config.resolve)
    say("3/6 drawing a tiny network and learning a tokenizer")
    runs["backbone"] = backbone(ranked, folders["backbone"], config.backbone)
    say("4/6 training the reward model")
    with _one_thread():
        runs["model"] = train(ranked, folders["model"], config.train, model=str(folders["backbone"]))
    say("5/6 evaluating it on prompts that it has not seen, beside baselines")
    for name, file in (("evaluated", "test.jsonl"), ("kinds", "kinds.jsonl")):
        with _one_thread():
            runs[name] = evaluate([simulated / file], folders[name], config.evaluate, model=model, train_cases=ranked)
    say("6/6 writing the page")
    shown = [folders[name] for name in ("simulated", "resolved", "resolved_llm", "model", "evaluated")]
    runs["report"] = report(shown, folders["report"], config.report)
    right = right_by_key(read_cases(ranked), read_cases(simulated / "gold.jsonl"))
    return Demo(runs, right, folders["report"] / "report.html")


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch on one thread: in a network this small, two threads wait for each other longer than they work."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def right_by_key(ranked: Iterable[Case], gold: Iterable[Case]) -> Share:
    """How many of the pairs across tiers are ordered so in the answer key, whose cases come in the same order."""
    number, total = 0, 0
    for case, key in zip(ranked, gold, strict=True):
        true = {(key.responses[pair.better].id, key.responses[pair.worse].id) for pair in pairs_of(key, "tiers")}
        pairs = pairs_of(case, "tiers")
        number += sum((case.responses[pair.better].id, case.responses[pair.worse].id) in true for pair in pairs)
        total += len(pairs)
    return Share(number, total)
