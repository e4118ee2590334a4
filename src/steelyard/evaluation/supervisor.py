"""The supervisor of other judges: the model behind its scores, its training prompts, and the prompts it may judge.

A model has memorized the prompts that it was trained on, so it may not judge the verdicts on them.
"""

from collections import deque
from pathlib import Path

from steelyard.core.errors import EvidenceError, ModelError
from steelyard.core.types import Case, Meta, Record, Run
from steelyard.io.cases import read_cases
from steelyard.io.progress import log
from steelyard.io.run_folder import RUN_FILE, file_hash, read_run
from steelyard.io.trained_on import TRAINED_ON_FILE, TrainedOn, read_trained_on, trained_on
from steelyard.plugins.reward_models import ModelChoice


class Supervisor(Record, frozen=True, kw_only=True):
    """The model behind the scores.

    ``trained_on`` is the case file that it was trained on, or its folder where that keeps hashes of the prompts; null
    if it is unknown or untrained. ``is_cross_fitted``: a prompt of its training is scored by a model that has not seen
    the prompt.
    """

    name: str
    protocol: Meta | None
    trained_on: str | None
    is_cross_fitted: bool

    def prompts(self) -> TrainedOn | None:
        """Return the prompts that it was trained on, null if they are unknown."""
        if self.trained_on is None:
            return None
        path = Path(self.trained_on)
        return read_trained_on(path) if path.is_dir() else trained_on(read_cases(path))


def supervisor_of_model(choice: ModelChoice, protocol: Meta, train_cases: Path | None) -> Supervisor:
    """Return a model as supervisor. Raises ModelError where its recorded training cases are not ``train_cases``."""
    folder, recorded = choice.files.get("path"), choice.files.get("train")
    if recorded is not None and train_cases is not None and file_hash(recorded) != file_hash(train_cases):
        raise ModelError(
            f"learns from {recorded}, not from {train_cases}", where=choice.name, do="leave --train-cases out"
        )
    path = recorded or (_training_prompts(folder, train_cases) if folder else train_cases)
    # A protocol with folds leaves out the fold of each prompt that it scores.
    return _supervisor(choice.name, protocol, path)


def supervisor_of_scores(scores: Path, calibrate_scores: Path | None, train_cases: Path | None) -> Supervisor:
    """Return the supervisor that the runs beside the scores record. Raises ModelError if their protocols differ."""
    run = _run_beside(scores)
    other = _run_beside(calibrate_scores) if calibrate_scores else None
    protocol = run.summary.get("protocol") if run else None
    if run and other and protocol != other.summary.get("protocol"):
        raise ModelError(
            "the cases and the calibration cases were not scored by one model in one way: their margins cannot be "
            f"compared ({protocol} and {other.summary.get('protocol')})",
            where=str(calibrate_scores),
            do="score both files by the same call of steelyard score",
        )
    folder = Path(run.inputs["model.path"].path) if run and "model.path" in run.inputs else None
    path = _training_prompts(folder, train_cases) if folder is not None and folder.is_dir() else train_cases
    if path is None and run and "model.train" in run.inputs and Path(run.inputs["model.train"].path).is_file():
        path = Path(run.inputs["model.train"].path)
    if path is None:
        log(f"the training cases of the model behind {scores} are unknown: name them by --train-cases FILE")
    return _supervisor(str(run.summary.get("model", scores)) if run else str(scores), protocol, path)


def _supervisor(name: str, protocol: Meta | None, path: Path | None) -> Supervisor:
    return Supervisor(
        name=name,
        protocol=protocol,
        trained_on=str(path) if path else None,
        is_cross_fitted="folds" in (protocol or {}),
    )


def check_may_judge(supervisor: Supervisor, cases: Path, *, compare_ids: bool, any_language: bool) -> None:
    """Raises EvidenceError if the model was trained on a prompt of the file, or on none of its languages.

    A prompt is known by its first turn, ignoring case, width and spacing, and by its id with ``compare_ids``.
    """
    training = supervisor.prompts()
    if training is None:
        # All cases are read: a broken one is refused before any is scored.
        deque(read_cases(cases), maxlen=0)
        return
    languages = training.languages
    num_cases, seen, other_languages = 0, list[Case](), list[Case]()
    for case in read_cases(cases):
        num_cases += 1
        is_seen = training.has_text(case) or (compare_ids and training.has_id(case))
        if is_seen and not supervisor.is_cross_fitted:
            seen.append(case)
        if languages and "" not in languages and case.prompt.language not in (None, *languages):
            other_languages.append(case)
    if seen:
        _refuse_seen(supervisor, cases, seen, training, num_cases)
    if other_languages and not any_language:
        raise EvidenceError(
            f"{len(other_languages)} of {num_cases} cases are in languages that the supervisor {supervisor.name} was "
            f"not trained on: {', '.join(sorted({str(case.prompt.language) for case in other_languages}))}",
            where=str(cases),
            allowed=", ".join(sorted(languages)),
            do="train one on these languages, or --set any_language=true if it is known to judge them",
        )


def _refuse_seen(supervisor: Supervisor, cases: Path, seen: list[Case], training: TrainedOn, num_cases: int) -> None:
    by_text = [case for case in seen if training.has_text(case)]
    num_by_id = len(seen) - len(by_text)
    how = f"{len(by_text)} by their text" + (f", {num_by_id} by their id alone" if num_by_id else "")
    hint = ", or --set compare_ids=false if equal ids are chance" if num_by_id else ""
    raise EvidenceError(
        f"the supervisor {supervisor.name} was trained on {len(seen)} of {num_cases} prompts ({how}), "
        f"the first: {seen[0].prompt.id!r}; its scores of memorized prompts are no evidence",
        where=str(cases),
        do=f"take them out, or train on other prompts (steelyard split keeps prompts apart){hint}",
    )


def _training_prompts(folder: Path, train_cases: Path | None) -> Path | None:
    """Return the folder of a model that keeps hashes of its prompts, else its training cases if they match.

    Raises ModelError where the manifest records other training cases, or they cannot be located.
    """
    from steelyard.networks.settings import read_manifest

    manifest = read_manifest(folder)
    if manifest is None:
        if train_cases is None:
            log(f"{folder} does not record its training cases: prompts are not checked without --train-cases FILE")
        return train_cases
    if train_cases is not None and file_hash(train_cases) != manifest.data_hash:
        raise ModelError(
            f"was not trained on {train_cases}", where=str(folder), do="name the file that it was trained on"
        )
    if (folder / TRAINED_ON_FILE).is_file():
        return folder
    if train_cases is not None:
        return train_cases
    recorded = read_run(folder).inputs.get("cases") if (folder / RUN_FILE).is_file() else None
    if recorded and Path(recorded.path).is_file() and file_hash(Path(recorded.path)) == manifest.data_hash:
        return Path(recorded.path)
    raise ModelError(
        "a supervisor may not judge prompts that it was trained on, and its training cases are not where they were",
        where=str(folder),
        do="name them: --train-cases FILE",
    )


def _run_beside(scores: Path) -> Run | None:
    return read_run(scores.parent) if (scores.parent / RUN_FILE).is_file() else None
