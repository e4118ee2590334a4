"""Prompts of a bench that a model was trained on: counted, and refused unless they are allowed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from steelyard.core.errors import EvidenceError
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Case, InputFinding
from steelyard.evaluation.evaluated_bench import Evaluation
from steelyard.io.progress import log
from steelyard.io.run_folder import run_beside
from steelyard.io.trained_on import TrainedOn, read_trained_on
from steelyard.plugins.reward_models import ModelChoice


def check_overlap(
    cases: Iterable[Case], *, choice: ModelChoice | None, scores: Path | None, is_allowed: bool
) -> dict[str, int]:
    """Count the prompts with the first turn of a training prompt of the model, or of the model behind the scores.

    Raises EvidenceError for such prompts unless they are allowed. Ids are not compared, since many benches number
    their prompts from 0.
    """
    folders = _folders(choice) if choice else _folders_behind(scores)
    known = [hashes for folder in folders if (hashes := read_trained_on(folder)) is not None]
    return refuse_overlap(cases, known, is_allowed=is_allowed)


def refuse_overlap(
    cases: Iterable[Case], known: Sequence[TrainedOn], *, is_allowed: bool, where: str | None = None
) -> dict[str, int]:
    """Count the cases whose first turn is that of a ``known`` prompt. Raises EvidenceError unless they are allowed."""
    if not known:
        return {}
    num_cases, seen = 0, list[str]()
    for case in cases:
        num_cases += 1
        if any(model.has_text(case) for model in known):
            seen.append(case.prompt.id)
    if not seen:
        return {}
    problem = f"the model was trained on {len(seen)} of {number_of(num_cases, 'prompt')}, the first: {seen[0]!r}"
    if not is_allowed:
        raise EvidenceError(
            f"{problem}; results on memorised prompts do not generalise",
            where=where,
            do=Advice(
                "remove them (",
                Command("split"),
                " separates prompts), or permit them: ",
                Remedy("allow_overlap", value=True),
            ),
        )
    log(f"warning: {problem}")
    return {"prompts that the model was trained on": len(seen)}


def trained_on(overlap: Mapping[str, int], evaluation: Evaluation) -> tuple[InputFinding, ...]:
    """Return a finding for the prompts that `check_overlap` counted."""
    total = len(evaluation.bench_pairs.columns.start)
    return tuple(InputFinding(check="trained_on", count=number, total=total) for number in overlap.values())


def _folders(choice: ModelChoice) -> Iterator[Path]:
    if "path" in choice.files:
        yield choice.files["path"]
    for member in choice.members:
        yield from _folders(member)


def _folders_behind(scores: Path | None) -> Iterator[Path]:
    """Yield the folders of the models that the run next to the scores records, if they still exist."""
    run = None if scores is None else run_beside(scores)
    for role, file in run.inputs.items() if run else ():
        if role.startswith("model.") and role.endswith(".path") and Path(file.path).is_dir():
            yield Path(file.path)
