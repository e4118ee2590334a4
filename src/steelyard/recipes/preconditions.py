"""Checks of a recipe before its first stage runs: settings, models, and prompts both trained and tested on.

Stages check their own inputs, but a training of hours may come before the stage that refuses. So each check that needs
only existing files is made at once. Checks of files that a stage has yet to write are left to the stage.
"""

from functools import cache
from pathlib import Path

from msgspec.structs import replace

from steelyard.core.errors import errors_at
from steelyard.evaluation.benches import BenchChoice, find_bench_files
from steelyard.evaluation.config import check_settings as check_evaluation
from steelyard.evaluation.config import choose_baselines
from steelyard.evaluation.overlap import refuse_overlap
from steelyard.evaluation.source import Source
from steelyard.evaluation.supervisor import SupervisionFiles, Supervisor, check_may_judge, check_supervision
from steelyard.io.cases import read_cases
from steelyard.io.trained_on import TrainedOn, trained_on
from steelyard.plugins.reward_models import choose_model
from steelyard.recipes.recipe import Recipe, Reference, Step
from steelyard.stages import evaluate, supervise, train
from steelyard.training.config import check_settings as check_training


def check_recipe(recipe: Recipe, out: Path) -> None:
    """Raise the errors that a stage would raise later: settings, a model that does not exist, prompts trained on.

    For a bench: no comparable pair, or prompts that the evaluated model is trained on. For a supervisor: prompts that
    it is trained on, or other languages.
    """
    sources = _Sources(recipe, out)
    for step in recipe.steps:
        if isinstance(step.config, train.Config):
            check_training(step.config)
        elif isinstance(step.config, evaluate.Config):
            _check_evaluation(step, step.config, sources)
        elif isinstance(step.config, supervise.Config):
            _check_supervision(step, step.config, sources)
        elif step.call.check_settings is not None:
            with errors_at(f"{recipe.path} at stages.{step.name}.config"):
                step.call.check_settings(step.config)


class _Sources:
    """The existing files with the prompts that a stage reads, traced through the stages before it."""

    def __init__(self, recipe: Recipe, out: Path) -> None:
        self.recipe = recipe
        self.out = out
        self.hashes = cache(lambda path: trained_on(read_cases(path)))

    def files(self, step: Step, key: str, reference: Reference) -> tuple[Path, ...] | None:
        """Return the files; null where an earlier stage draws some of their prompts, or makes prompts."""
        if reference.stage is None:
            return step.files(key, self.recipe.locate(reference, self.out)) or None
        writer = self.recipe.step(reference.stage)
        if writer.call.verb in ("convert", "split", "simulate"):
            return None
        files = [self.files(writer, name, source) for name, source in writer.references() if name in ("cases", "files")]
        if not files or None in files:
            return None
        return tuple(path for paths in files for path in paths or ())

    def training(self, model: Reference) -> tuple[Path, ...] | None:
        """Return the files with the prompts that a stage trains the model on; null where they are unknown yet."""
        if model.stage is None:
            return None
        step = self.recipe.step(model.stage)
        cases = step.reference("cases")
        return self.files(step, "cases", cases) if step.call.verb == "train" and cases is not None else None

    def training_prompts(self, model: Reference) -> TrainedOn | None:
        """Return the prompts that the model is trained on, null where they are unknown yet."""
        prompts: TrainedOn | None = None
        for path in self.training(model) or ():
            prompts = self.hashes(path) if prompts is None else prompts.union(self.hashes(path))
        return prompts


def _check_evaluation(step: Step, config: evaluate.Config, sources: _Sources) -> None:
    check_evaluation(config)
    model, train_cases = step.reference("model"), step.reference("train_cases")
    if model is not None and model.stage is None:
        choose_model(str(sources.recipe.locate(model, sources.out)), config.model)
    path = None
    if train_cases is not None:
        # Where a stage has yet to write the training cases, an existing file takes their place.
        is_there = train_cases.stage is None
        path = sources.recipe.locate(train_cases, sources.out) if is_there else sources.recipe.path
    choose_baselines(config, path)
    source = _source(step, config, sources)
    if source is None:
        return
    source.check()
    training_prompts = None if model is None else sources.training_prompts(model)
    if training_prompts is not None:
        refuse_overlap(source.cases, [training_prompts], is_allowed=config.allow_overlap, where=f"stage {step.name}")


def _source(step: Step, config: evaluate.Config, sources: _Sources) -> Source | None:
    """Return the benches without baselines; null where a stage has yet to write one of their files."""
    if any(reference.stage is not None for reference in step.inputs["benches"]):
        return None
    files = [sources.recipe.locate(reference, sources.out) for reference in step.inputs["benches"]]
    chosen = BenchChoice.of(config.bench_kind, config.bench, files, kept_prompts=None)
    config = replace(config, bench_kind=chosen.kind, bench=chosen.settings)
    return Source(chosen.cases(find_bench_files(files, chosen.bench)), chosen.bench, config, {})


def _check_supervision(step: Step, config: supervise.Config, sources: _Sources) -> None:
    model, scores = step.reference("model"), step.reference("scores")
    paths = {
        key: Path(reference.text)
        for key, reference in step.references()
        if key in SupervisionFiles._fields and key != "model"
    }
    check_supervision(config, SupervisionFiles(model=None if model is None else model.text, **paths))
    if model is None or scores is not None:
        return
    if model.stage is None:
        choose_model(str(sources.recipe.locate(model, sources.out)), config.model)
        return
    trained = sources.training(model) or ()
    judged = [(key, source) for key, source in step.references() if key in ("cases", "calibration_cases")]
    for path in (path for key, source in judged for path in sources.files(step, key, source) or ()):
        for file in trained:
            supervisor = Supervisor(name=model.stage, protocol=None, trained_on=str(file), is_cross_fitted=False)
            check_may_judge(
                supervisor, path, compare_ids=config.compare_ids, allow_other_languages=config.allow_other_languages
            )
