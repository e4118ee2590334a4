"""Whether a model is measured on prompts that it was trained on, as far as its folder keeps hashes of them."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case
from steelyard.io.progress import log
from steelyard.io.run_folder import RUN_FILE, read_run
from steelyard.io.trained_on import TrainedOn, read_trained_on
from steelyard.plugins.reward_models import ModelChoice


def check_overlap(
    cases: Iterable[Case], *, choice: ModelChoice | None, scores: Path | None, is_allowed: bool
) -> dict[str, int]:
    """What is to be noted: how many prompts begin as one that the model, or the one behind the scores, was trained on.

    Raises EvidenceError for such prompts unless they are allowed. Ids are not compared: benches count from 0 too.
    """
    folders = _folders(choice) if choice else _folders_behind(scores)
    known = [found for folder in folders if (found := read_trained_on(folder)) is not None]
    return refuse_overlap(cases, known, is_allowed=is_allowed)


def refuse_overlap(
    cases: Iterable[Case], known: Sequence[TrainedOn], *, is_allowed: bool, where: str | None = None
) -> dict[str, int]:
    """The number of cases that begin as a ``known`` prompt does, to be noted. Raises EvidenceError unless allowed."""
    if not known:
        return {}
    num_cases, seen = 0, list[str]()
    for case in cases:
        num_cases += 1
        if any(one.has_text(case) for one in known):
            seen.append(case.prompt.id)
    if not seen:
        return {}
    found = f"the model was trained on {len(seen)} of {num_cases} prompts, the first: {seen[0]!r}"
    if not is_allowed:
        raise EvidenceError(
            f"{found}; what it learnt by heart says nothing of other prompts",
            where=where,
            do="take them out (steelyard split keeps prompts apart), or say --set allow_overlap=true",
        )
    log(f"warning: {found}")
    return {"prompts that the model was trained on": len(seen)}


def _folders(choice: ModelChoice) -> Iterator[Path]:
    if "path" in choice.files:
        yield choice.files["path"]
    for member in choice.members:
        yield from _folders(member)


def _folders_behind(scores: Path | None) -> Iterator[Path]:
    """The folders of the models that the run beside the scores records, as far as they are still there."""
    if scores is None or not (scores.parent / RUN_FILE).is_file():
        return
    for role, given in read_run(scores.parent).inputs.items():
        if role.startswith("model.") and role.endswith(".path") and Path(given.path).is_dir():
            yield Path(given.path)
