"""Who supervises, what it was trained on, and whether it may judge these prompts: a model knows those it has seen."""

from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.core.errors import EvidenceError, ModelError
from steelyard.core.types import Case, Run
from steelyard.io.cases import read_cases
from steelyard.io.progress import log
from steelyard.io.run_folder import RUN_FILE, file_hash, read_run
from steelyard.io.trained_on import TRAINED_ON_FILE, TrainedOn, read_trained_on, trained_on
from steelyard.plugins.reward_models import ModelChoice
from steelyard.stages.supervise.settings import Config, Files


class Supervisor(NamedTuple):
    """What is known of the model behind the scores.

    ``trained_on`` is the case file that it learnt from, or its folder where that keeps hashes of the prompts; null if
    there is none or it is unknown. ``is_cross_fitted``: it scores a prompt that it was trained on by a model that has
    not seen the prompt.
    """

    name: str
    protocol: dict[str, Any] | None
    trained_on: Path | None
    is_cross_fitted: bool

    def prompts(self) -> TrainedOn | None:
        """The prompts that it learnt from, null if they are unknown."""
        if self.trained_on is None:
            return None
        return read_trained_on(self.trained_on) if self.trained_on.is_dir() else trained_on(read_cases(self.trained_on))

    def as_row(self) -> dict[str, Any]:
        """What the run's summary says of the supervisor."""
        trained_on = str(self.trained_on) if self.trained_on else None
        return {
            "name": self.name,
            "protocol": self.protocol,
            "trained_on": trained_on,
            "is_cross_fitted": self.is_cross_fitted,
        }


def of_model(choice: ModelChoice, protocol: dict[str, Any], train_cases: Path | None) -> Supervisor:
    """The supervisor that scores by itself. Raises ModelError where its training cases are known and not these."""
    folder, own = choice.files.get("path"), choice.files.get("train")
    if own is not None and train_cases is not None and file_hash(own) != file_hash(train_cases):
        raise ModelError(f"learns from {own}, not from {train_cases}", where=choice.name, do="leave --train-cases out")
    trained_on = own or (_trained_on(folder, train_cases) if folder else train_cases)
    # A model that says of itself in how many folds it lies leaves the fold of each prompt that it scores out.
    return Supervisor(choice.name, protocol, trained_on, is_cross_fitted="folds" in protocol)


def of_scores(files: Files) -> Supervisor:
    """The supervisor as the runs beside the scores record it. Raises ModelError if two protocols made the scores."""
    assert files.scores is not None
    run = _run_beside(files.scores)
    other = _run_beside(files.calibrate_scores) if files.calibrate_scores else None
    protocol = run.summary.get("protocol") if run else None
    if run and other and protocol != other.summary.get("protocol"):
        raise ModelError(
            "the cases and the calibration cases were not scored by one model in one way: a tau of one is none of "
            f"the other ({protocol} and {other.summary.get('protocol')})",
            where=str(files.calibrate_scores),
            do="score both files by the same call of steelyard score",
        )
    folder = Path(run.inputs["model.path"].path) if run and "model.path" in run.inputs else None
    is_there = folder is not None and folder.is_dir()
    trained_on = _trained_on(folder, files.train_cases) if is_there and folder else files.train_cases
    if trained_on is None and run and "model.train" in run.inputs and Path(run.inputs["model.train"].path).is_file():
        trained_on = Path(run.inputs["model.train"].path)
    name = str(run.summary.get("model", files.scores)) if run else str(files.scores)
    if trained_on is None:
        log(f"what the model behind {files.scores} was trained on is not known: say it by --train-cases FILE")
    return Supervisor(name, protocol, trained_on, is_cross_fitted="folds" in (protocol or {}))


def check_fits(supervisor: Supervisor, cases: Path, config: Config) -> None:
    """Raises EvidenceError if the model was trained on a prompt of the file, or on none of its languages.

    All cases are read, also where nothing is known of the training: a broken one is refused before any is scored.
    A prompt is known by its first turn, whatever its case, width and spacing, and by its id if ids are compared.
    """
    known = supervisor.prompts()
    if known is None:
        deque(read_cases(cases), maxlen=0)
        return
    languages = known.languages
    num_cases, seen, foreign = 0, list[Case](), list[Case]()
    for case in read_cases(cases):
        num_cases += 1
        is_seen = known.has_text(case) or (config.compare_ids and known.has_id(case))
        if is_seen and not supervisor.is_cross_fitted:
            seen.append(case)
        if languages and "" not in languages and case.prompt.language not in (None, *languages):
            foreign.append(case)
    if seen:
        _refuse_seen(supervisor, cases, seen, known, num_cases)
    if foreign and not config.any_language:
        raise EvidenceError(
            f"{len(foreign)} of {num_cases} cases are in languages that the supervisor {supervisor.name} was not "
            f"trained on: {', '.join(sorted({str(case.prompt.language) for case in foreign}))}",
            where=str(cases),
            allowed=", ".join(sorted(languages)),
            do="train one on these languages, or say --set any_language=true if it is known to judge them",
        )


def _refuse_seen(supervisor: Supervisor, cases: Path, seen: list[Case], known: TrainedOn, num_cases: int) -> None:
    by_text = [case for case in seen if known.has_text(case)]
    only_id = len(seen) - len(by_text)
    how = f"{len(by_text)} by their text" + (f", {only_id} by their id alone" if only_id else "")
    hint = ", or --set compare_ids=false if equal ids are chance" if only_id else ""
    raise EvidenceError(
        f"the supervisor {supervisor.name} was trained on {len(seen)} of {num_cases} prompts ({how}), "
        f"the first: {seen[0].prompt.id!r}; what it learnt of them by heart is no evidence",
        where=str(cases),
        do=f"take them out, or train on other prompts (steelyard split keeps prompts apart){hint}",
    )


def _trained_on(folder: Path, given: Path | None) -> Path | None:
    """The folder of a model that keeps hashes of its prompts, else its training cases, held against its manifest."""
    from steelyard.networks.manifest import read_manifest

    manifest = read_manifest(folder)
    if manifest is None:
        if given is None:
            log(f"{folder} does not say what it was trained on: its prompts are not checked without --train-cases FILE")
        return given
    if given is not None and file_hash(given) != manifest.data_hash:
        raise ModelError(f"was not trained on {given}", where=str(folder), do="name the file that it was trained on")
    if (folder / TRAINED_ON_FILE).is_file():
        return folder
    if given is not None:
        return given
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
