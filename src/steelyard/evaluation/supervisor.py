"""The supervisor of other judges: its model, its training prompts, and a check of the prompts that it judges.

A model memorises its training prompts, so its scores of them do not test the verdicts of others.
"""

from collections import deque
from pathlib import Path
from typing import NamedTuple

from steelyard.core.errors import ConfigError, EvidenceError, ModelError
from steelyard.core.languages import language_key
from steelyard.core.remedies import FILE, Advice, Command, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, Meta, Record
from steelyard.curation.calibration import ThresholdPoint, ThresholdRow
from steelyard.curation.supervision import Config, Policy, check_policy
from steelyard.io.cases import read_cases
from steelyard.io.hashing import file_hash
from steelyard.io.progress import log
from steelyard.io.run_folder import RUN_FILE, read_run, run_beside
from steelyard.io.trained_on import TRAINED_ON_FILE, TrainedOn, read_trained_on, trained_on
from steelyard.plugins.reward_models import ModelChoice


class Supervisor(Record, frozen=True, kw_only=True):
    """The model behind the scores.

    ``trained_on`` is its training case file, or its folder if that has hashes of the prompts; null if it is unknown or
    untrained. ``is_cross_fitted``: a training prompt is scored by a model whose folds exclude the prompt.
    """

    name: str
    protocol: Meta | None
    trained_on: str | None
    is_cross_fitted: bool

    def prompts(self) -> TrainedOn | None:
        """Return the training prompts; null if they are unknown."""
        if self.trained_on is None:
            return None
        path = Path(self.trained_on)
        return read_trained_on(path) if path.is_dir() else trained_on(read_cases(path))


def supervisor_of_model(choice: ModelChoice, protocol: Meta, train_cases: Path | None) -> Supervisor:
    """Return a model as supervisor. Raises ModelError where its recorded training cases are not ``train_cases``."""
    folder, recorded = choice.files.get("path"), choice.files.get("train")
    if recorded is not None and train_cases is not None and file_hash(recorded) != file_hash(train_cases):
        raise ModelError(
            f"the model is trained on {recorded}, but train_cases is {train_cases}",
            where=choice.name,
            do=Advice("remove ", Remedy("train_cases")),
        )
    path = recorded or (_training_prompts(folder, train_cases) if folder else train_cases)
    # A protocol with folds leaves out the fold of each prompt that it scores.
    return _supervisor(choice.name, protocol, path)


def supervisor_of_scores(scores: Path, calibration_scores: Path | None, train_cases: Path | None) -> Supervisor:
    """Return the supervisor recorded next to the scores. Raises ModelError for two different protocols."""
    run = run_beside(scores)
    other = run_beside(calibration_scores) if calibration_scores else None
    protocol = run.summary.get("protocol") if run else None
    if run and other and protocol != other.summary.get("protocol"):
        raise ModelError(
            "the cases and the calibration cases were scored under different protocols, so their margins are not "
            f"comparable ({protocol} and {other.summary.get('protocol')})",
            where=str(calibration_scores),
            do=Advice("score both files with the same model and settings of `", Command("score"), "`"),
        )
    folder = Path(run.inputs["model.path"].path) if run and "model.path" in run.inputs else None
    path = _training_prompts(folder, train_cases) if folder is not None and folder.is_dir() else train_cases
    if path is None and run and "model.train" in run.inputs and Path(run.inputs["model.train"].path).is_file():
        path = Path(run.inputs["model.train"].path)
    if path is None:
        where = f"the training cases of the model behind {scores} are unknown: name them with "
        log(Advice(where, Remedy("train_cases", FILE)))
    return _supervisor(str(run.summary.get("model", scores)) if run else str(scores), protocol, path)


def _supervisor(name: str, protocol: Meta | None, path: Path | None) -> Supervisor:
    return Supervisor(
        name=name,
        protocol=protocol,
        trained_on=str(path) if path else None,
        is_cross_fitted="folds" in (protocol or {}),
    )


def check_may_judge(supervisor: Supervisor, cases: Path, *, compare_ids: bool, allow_other_languages: bool) -> None:
    """Raise EvidenceError if the model was trained on a prompt of the file, or not on a language of the file.

    Prompts are compared by their first turn, ignoring case, width and spacing, and with ``compare_ids`` by id.
    """
    training = supervisor.prompts()
    if training is None:
        # Read all cases, so that an invalid one is reported before any is scored.
        deque(read_cases(cases), maxlen=0)
        return
    languages = training.languages
    known = {*map(language_key, languages)}
    num_cases, seen, other_languages = 0, list[Case](), list[Case]()
    for case in read_cases(cases):
        num_cases += 1
        is_seen = training.has_text(case) or (compare_ids and training.has_id(case))
        if is_seen and not supervisor.is_cross_fitted:
            seen.append(case)
        if (
            languages
            and "" not in languages
            and case.prompt.language
            and language_key(case.prompt.language) not in known
        ):
            other_languages.append(case)
    if seen:
        _refuse_seen(supervisor, cases, seen, training, num_cases)
    if other_languages and not allow_other_languages:
        raise EvidenceError(
            f"{len(other_languages)} of {number_of(num_cases, 'case')} "
            f"{verb_for(len(other_languages), 'is', 'are')} in languages that the supervisor {supervisor.name} was "
            f"not trained on: {', '.join(sorted({str(case.prompt.language) for case in other_languages}))}",
            where=str(cases),
            allowed=", ".join(sorted(languages)),
            do=Advice(
                "use a supervisor trained on these languages, or permit this one: ",
                Remedy("allow_other_languages", value=True),
            ),
        )


def _refuse_seen(supervisor: Supervisor, cases: Path, seen: list[Case], training: TrainedOn, num_cases: int) -> None:
    by_text = [case for case in seen if training.has_text(case)]
    num_by_id = len(seen) - len(by_text)
    how = f"{len(by_text)} by their text" + (f", {num_by_id} by their id alone" if num_by_id else "")
    hint = ("; or use ", Remedy("compare_ids", value=False), " if equal ids are a coincidence") if num_by_id else ()
    raise EvidenceError(
        f"the supervisor {supervisor.name} was trained on {len(seen)} of {number_of(num_cases, 'prompt')} ({how}), "
        f"the first: {seen[0].prompt.id!r}; its scores of memorised prompts are no evidence",
        where=str(cases),
        do=Advice("remove them, or train on other prompts (", Command("split"), " separates prompts)", *hint),
    )


def _training_prompts(folder: Path, train_cases: Path | None) -> Path | None:
    """Return the folder of a model with hashes of its training prompts, else its training cases.

    Raises ModelError if the manifest records other training cases, or if they cannot be located.
    """
    from steelyard.networks.settings import read_manifest

    manifest = read_manifest(folder)
    if manifest is None:
        if train_cases is None:
            lack = f"{folder} does not record its training cases: prompts are not checked without "
            log(Advice(lack, Remedy("train_cases", FILE)))
        return train_cases
    if train_cases is not None and file_hash(train_cases) != manifest.data_hash:
        raise ModelError(
            f"the model was not trained on {train_cases}", where=str(folder), do="name the file that it was trained on"
        )
    if (folder / TRAINED_ON_FILE).is_file():
        return folder
    if train_cases is not None:
        return train_cases
    recorded = read_run(folder).inputs.get("cases") if (folder / RUN_FILE).is_file() else None
    if recorded and Path(recorded.path).is_file() and file_hash(Path(recorded.path)) == manifest.data_hash:
        return Path(recorded.path)
    raise ModelError(
        "the training cases of the supervisor are no longer at their recorded place, so overlap cannot be checked",
        where=str(folder),
        do=Advice("name them: ", Remedy("train_cases", FILE)),
    )


class SupervisionCoverage(Record, frozen=True, kw_only=True):
    """The shares that are kept: of judgments, of strict judgments, and of prompts with a strict judgment."""

    judgments: float
    strict: float
    prompts: float


class ThresholdCertificate(Record, frozen=True, kw_only=True):
    """The targets of a calibration, its labelled judgments and prompts, and every candidate threshold."""

    precision: float | None
    confidence: float
    num_judgments: int
    num_prompts: int
    points: tuple[ThresholdPoint, ...]


class SupervisionSummary(Record, frozen=True, kw_only=True):
    """The policy, the supervisor, the coverage, and for ``agree`` each threshold with its source of precision.

    ``max_difference``: of ``closest``, the largest difference of two scores that is kept.
    """

    policy: Policy
    min_margin: float | None
    supervisor: Supervisor
    coverage: SupervisionCoverage
    num_strict: int
    num_strict_kept: int
    by_threshold: tuple[ThresholdRow, ...]
    precision_from: str | None
    calibration: ThresholdCertificate | None
    max_difference: float | None = None


class SupervisionFiles(NamedTuple):
    """The inputs of supervision besides the cases.

    Either a ``model`` (a trained model's folder, or a kind) or ``scores``. ``calibration_cases``: cases that people and
    the supervised judge judged alike, with ``calibration_scores`` where ``scores`` are an input. ``train_cases``: the
    cases that the supervisor was trained on. ``as_many_as``: cases whose number of judgments is that to keep.
    """

    model: str | None = None
    scores: Path | None = None
    calibration_cases: Path | None = None
    calibration_scores: Path | None = None
    train_cases: Path | None = None
    as_many_as: Path | None = None


def check_supervision(config: Config, files: SupervisionFiles) -> None:
    """Raise ConfigError for settings that contradict each other, lack another, or are outside their range."""
    if (files.model is None) == (files.scores is None):
        problem = "both model and scores" if files.model else "neither model nor scores"
        raise ConfigError(problem, do="give a reward model, or the scores that one gave these cases")
    if files.calibration_scores is not None and (files.calibration_cases is None or files.model is not None):
        raise ConfigError("calibration_scores goes with scores and calibration_cases", do="a model scores both files")
    if files.scores is not None and files.calibration_cases is not None and files.calibration_scores is None:
        raise ConfigError(
            "scores with calibration_cases, but no scores of the calibration cases",
            do=Advice("give ", Remedy("calibration_scores", FILE), " too"),
        )
    if config.model and files.scores is not None:
        raise ConfigError(
            f"settings of a model ({', '.join(sorted(config.model))}) with scores", do="the scores are made already"
        )
    is_calibrated = files.calibration_cases is not None
    takes_size = config.policy in ("agree", "closest") and config.min_margin is None and not is_calibrated
    if files.as_many_as is not None and not takes_size:
        raise ConfigError(
            "as_many_as sets the margin of the policies agree and closest",
            do="leave min_margin, calibration_cases and other policies away",
        )
    if config.policy == "closest" and files.as_many_as is None:
        do = Advice("say how many verdicts are kept: ", Remedy("as_many_as", FILE))
        raise ConfigError("the policy closest without a number of verdicts", do=do)
    check_policy(config, is_calibrated=is_calibrated)
