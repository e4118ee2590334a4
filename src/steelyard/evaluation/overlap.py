"""Prompts of a bench that a model was trained on: counted, and refused unless they are allowed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from steelyard.core.errors import EvidenceError, listed
from steelyard.core.languages import language_key
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, InputFinding
from steelyard.curation.splits import root_text
from steelyard.evaluation.prompt_files import bench_texts
from steelyard.io.cases import read_cases
from steelyard.io.progress import log
from steelyard.io.run_folder import run_beside
from steelyard.io.trained_on import TrainedOn, read_trained_on, trained_on
from steelyard.plugins.reward_models import ModelChoice
from steelyard.prompts.near_duplicates import fingerprint

_NUM_EXAMPLES = 3


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


def count_shared(cases: Path, others: Path, *, overlap: float, is_allowed: bool) -> int:
    """Count the prompts whose first turn is a near-duplicate of one of the ``others``, by a similarity of ``overlap``.

    Raises EvidenceError for such prompts unless they are allowed.
    """
    references = bench_texts(others, overlap)
    shared = [
        case.prompt.id for case in read_cases(cases) if references.nearest(fingerprint(root_text(case))) is not None
    ]
    if shared and not is_allowed:
        raise EvidenceError(
            f"{number_of(len(shared), 'prompt')} {verb_for(len(shared), 'is', 'are')} in {others}: {listed(shared)}",
            where=str(cases),
            do=Advice(
                "leave them out: ",
                Command("prompts", (str(cases),), (Remedy("against", str(others)), Remedy("out", "prepared"))),
                " and score the rest again, or say ",
                Remedy("allow_overlap", value=True),
            ),
        )
    return len(shared)


def overlap_findings(
    cases: Iterable[Case],
    overlap: Mapping[str, int],
    *,
    choice: ModelChoice | None,
    scores: Path | None,
    train_cases: Sequence[Path | None],
) -> tuple[InputFinding, ...]:
    """Return findings for the ``overlap`` that `check_overlap` counted, for prompts of files, and for translations.

    Those of the training files are not refused: scores from elsewhere need not be of a model that learned from them.
    Texts are compared where no model is known, whose own prompts `check_overlap` compares. Items with one id in several
    languages are translations of each other, as `split` takes them; an id may also be a number that another prompt has.
    """
    folders = _folders(choice) if choice else _folders_behind(scores)
    known = [hashes for folder in folders if (hashes := read_trained_on(folder)) is not None]
    has_model = bool(known) or scores is not None
    training = tuple(case for path in filter(None, train_cases) if has_model for case in read_cases(path))
    if not (known or training):
        return ()
    listed = trained_on(training)
    languages: dict[str, set[str]] = {}
    for prompt in (case.prompt for case in training):
        if prompt.language:
            languages.setdefault(prompt.id, set()).add(language_key(prompt.language))
    total, equal, translated = 0, list[str](), list[str]()
    for case in cases:
        total += 1
        if any(hashes.has_text(case) for hashes in (listed, *known)):
            if not known:
                equal.append(case.prompt.id)
        elif case.prompt.language:
            language = language_key(case.prompt.language)
            others = languages.get(case.prompt.id, set()) - {language}
            if others or any(hashes.has_id(case) and _lacks(hashes, language) for hashes in known):
                translated.append(case.prompt.id)
    by_check = {"in_train_cases": equal, "translated_training_prompts": translated}
    return (
        *(InputFinding(check="trained_on", count=number, total=total) for number in overlap.values()),
        *(
            InputFinding(check=check, count=len(ids), total=total, examples=tuple(ids[:_NUM_EXAMPLES]))
            for check, ids in by_check.items()
            if ids
        ),
    )


def _lacks(hashes: TrainedOn, language: str) -> bool:
    """Return whether no training prompt is of the language; false where the languages are not known."""
    return "" not in hashes.languages and language not in {language_key(known) for known in hashes.languages}


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
