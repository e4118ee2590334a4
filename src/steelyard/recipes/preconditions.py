"""What the stages of a recipe would refuse, found before the first of them runs: settings, models, prompts seen twice.

Stages check their own inputs, and a training of hours may stand before the stage that refuses. Here each check that
needs nothing but files that are there already is made at once. What a stage has yet to write is left to the stage.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from steelyard.core.plugins import build
from steelyard.evaluation.batches import Source
from steelyard.evaluation.benches import BenchCases
from steelyard.evaluation.config import check_settings as check_evaluation
from steelyard.evaluation.config import choose_baselines
from steelyard.evaluation.overlap import refuse_overlap
from steelyard.evaluation.supervisor import Supervisor, check_may_judge
from steelyard.io.cases import read_cases
from steelyard.io.trained_on import TrainedOn, trained_on
from steelyard.plugins.reward_models import choose_model
from steelyard.recipes.plan import resolved_path
from steelyard.recipes.recipes import Recipe, Reference, Step
from steelyard.stages import evaluate, supervise, train
from steelyard.stages.supervise import Files
from steelyard.stages.supervise import check_settings as check_supervision
from steelyard.training.config import check_settings as check_training


def check_recipe(recipe: Recipe, out: Path) -> None:
    """Raises what a stage would raise later: for its settings, a model that does not exist, or prompts seen before.

    Of a bench: no comparable pair, or prompts that the evaluated model is trained on. Of a supervisor: prompts that it
    is trained on, or other languages.
    """
    sources = _Sources(recipe, out)
    for step in recipe.steps:
        if isinstance(step.config, train.Config):
            check_training(step.config)
        elif isinstance(step.config, evaluate.Config):
            _check_evaluation(step, step.config, sources)
        elif isinstance(step.config, supervise.Config):
            _check_supervision(step, step.config, sources)


class _Sources:
    """Which files that are there already hold the prompts that a stage reads, traced through the stages before it."""

    def __init__(self, recipe: Recipe, out: Path) -> None:
        self.recipe = recipe
        self.out = out
        self.hashes = cache(lambda path: trained_on(read_cases(path)))

    def files(self, reference: Reference) -> tuple[Path, ...] | None:
        """The files; null where a stage before draws some of their prompts, or makes prompts of its own."""
        if reference.stage is None:
            path = resolved_path(reference, self.recipe, self.out)
            return (path,) if path.is_file() else None
        step = self.recipe.step(reference.stage)
        if step.call.verb in ("split", "simulate"):
            return None
        given = [one for key, one in step.references() if key in ("cases", "files")]
        found = [self.files(one) for one in given]
        if not found or None in found:
            return None
        return tuple(path for paths in found for path in paths or ())

    def training(self, model: Reference) -> tuple[Path, ...] | None:
        """The files with the prompts that a stage trains the model on; null where they are not known yet."""
        if model.stage is None:
            return None
        step = self.recipe.step(model.stage)
        cases = step.inputs.get("cases")
        return self.files(cases) if step.call.verb == "train" and isinstance(cases, Reference) else None

    def known(self, model: Reference) -> TrainedOn | None:
        """The prompts that the model is trained on."""
        found: TrainedOn | None = None
        for path in self.training(model) or ():
            own = self.hashes(path)
            found = own if found is None else found.union(own)
        return found


def _given(step: Step, key: str) -> Reference | None:
    value = step.inputs.get(key)
    return value if isinstance(value, Reference) else None


def _check_evaluation(step: Step, config: evaluate.Config, sources: _Sources) -> None:
    check_evaluation(config)
    model, taught = _given(step, "model"), _given(step, "train_cases")
    if model is not None and model.stage is None:
        choose_model(str(resolved_path(model, sources.recipe, sources.out)), config.model)
    # Where a stage has yet to write the training cases, a file that is there stands for them.
    path = (
        resolved_path(taught, sources.recipe, sources.out) if taught and taught.stage is None else sources.recipe.path
    )
    choose_baselines(config, None if taught is None else path)
    source = _source(step, config, sources)
    if source is None:
        return
    source.check()
    known = None if model is None else sources.known(model)
    if known is not None:
        refuse_overlap(source.cases, [known], is_allowed=config.allow_overlap, where=f"stage {step.name}")


def _source(step: Step, config: evaluate.Config, sources: _Sources) -> Source | None:
    """The benches without baselines, where all of their files are there already."""
    references = [one for key, one in step.references() if key == "benches"]
    if any(one.stage is not None for one in references):
        return None
    files = [resolved_path(one, sources.recipe, sources.out) for one in references]
    bench = build("benches", config.bench_kind, config.bench)
    return Source(BenchCases(files, bench), bench, config, {})


def _check_supervision(step: Step, config: supervise.Config, sources: _Sources) -> None:
    model, scores = _given(step, "model"), _given(step, "scores")
    paths = {key: Path(one.text) for key, one in step.references() if key in Files._fields and key != "model"}
    check_supervision(config, Files(model=None if model is None else model.text, **paths))
    if model is None or scores is not None:
        return
    if model.stage is None:
        choose_model(str(resolved_path(model, sources.recipe, sources.out)), config.model)
        return
    trained = sources.training(model) or ()
    for path in _judged_files(step, sources):
        for file in trained:
            supervisor = Supervisor(name=model.stage, protocol=None, trained_on=str(file), is_cross_fitted=False)
            check_may_judge(supervisor, path, compare_ids=config.compare_ids, any_language=config.any_language)


def _judged_files(step: Step, sources: _Sources) -> Iterator[Path]:
    for key in ("cases", "calibrate"):
        reference = _given(step, key)
        yield from (sources.files(reference) or ()) if reference is not None else ()
