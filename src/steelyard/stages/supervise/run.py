"""One run of supervision: check who supervises, score, find tau, filter, and say what was dropped and why."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.types import Run
from steelyard.curation.calibration import Calibration, candidate_taus
from steelyard.io.cases import read_cases
from steelyard.io.ledger import LEDGER_FILE
from steelyard.io.lines import check_readable
from steelyard.io.progress import log
from steelyard.io.run_folder import Result, read_run, result_folder
from steelyard.plugins.reward_models import ModelChoice, build_model, choose_model, forget_lines
from steelyard.ranking.judgment_table import check_admits
from steelyard.stages.supervise.filtering import Filtered, write_supervised
from steelyard.stages.supervise.scoring import read_batches_scored, read_batches_unscored, write_scores
from steelyard.stages.supervise.settings import DEFAULT_CONFIDENCE, Config, Files, check_settings
from steelyard.stages.supervise.supervisor import Supervisor, check_fits, of_model, of_scores
from steelyard.stages.supervise.thresholds import (
    Survey,
    by_tau,
    calibrated,
    check_judged,
    check_key,
    check_some_kept,
    survey,
)

_DEFAULT = Config()


class _Threshold(NamedTuple):
    """Tau and where it is from; ``held_out`` is what the calibration cases say, null without any."""

    tau: float
    calibration: Calibration | None
    held_out: Survey | None


def supervise(
    cases: Path,
    out: Path,
    config: Config = _DEFAULT,
    *,
    model: str | None = None,
    scores: Path | None = None,
    calibrate: Path | None = None,
    calibrate_scores: Path | None = None,
    train_cases: Path | None = None,
    force: bool = False,
) -> Run:
    """Write ``cases.jsonl`` with the judgments kept and their ranking, and ``manifest.jsonl`` with those dropped.

    Give either a ``model`` (a trained model's folder, or a kind) or ``scores``. ``calibrate``: cases that people and
    the supervised judge judged alike. A model's scores are written too (``scores.jsonl``). Raises ConfigError for
    contradictory settings; ModelError and EvidenceError for a supervisor that may not judge these cases; EvidenceError,
    with a table of coverage, for a tau that drops everything, or if no tau is certified.
    """
    files = Files(model, scores, calibrate, calibrate_scores, train_cases)
    check_settings(config, files)
    choice = choose_model(model, config.model) if model else None
    inputs = {"cases": cases} | {role: path for role, path in files._asdict().items() if isinstance(path, Path)}
    for path in inputs.values():
        check_readable(path)
    asked = msgspec.to_builtins(config)
    if choice:
        inputs |= choice.inputs()
        asked |= {"kind": choice.kind, "model": choice.settings}
    with result_folder(out, "supervise", config=asked, inputs=inputs, seed=config.seed, force=force) as result:
        if result.is_finished:
            log(f"{out} is finished already: equal inputs and settings")
            return read_run(out)
        _run(result, cases, config, files, choice)
    return read_run(out)


def _run(result: Result, cases: Path, config: Config, files: Files, choice: ModelChoice | None) -> None:
    check_admits(config.only, read_cases(cases), where=str(cases))
    if files.calibrate:
        check_key(survey(read_batches_unscored(files.calibrate, config.only), config), where=str(files.calibrate))
    supervisor, files = _scored(result, cases, config, files, choice)
    assert files.scores is not None
    seen = survey(read_batches_scored(cases, files.scores, config.only), config)
    check_judged(seen, where=str(cases))
    if config.policy == "agree":
        kept_scores = f"; the scores are in {files.scores}, for --scores and another --out" if choice else ""
        check_some_kept(seen, config.tau or 0.0, where=str(cases), do=f"take a smaller tau{kept_scores}")
    threshold = _threshold(seen, config, files)
    rule = config.rule(threshold.tau)
    filtered = write_supervised(read_batches_scored(cases, files.scores, config.only), rule, result)
    result.counts = filtered.counts
    result.summary = _summary(config, supervisor, filtered, seen, threshold)
    forget_lines(result)


def _scored(
    result: Result, cases: Path, config: Config, files: Files, choice: ModelChoice | None
) -> tuple[Supervisor, Files]:
    """The supervisor, which has been checked against all prompts, and where the scores of each file are."""
    # A judge keeps its replies by itself: nothing is asked twice.
    ledger = result.path(LEDGER_FILE) if choice and choice.jury else None
    model = build_model(choice, ledger=ledger) if choice else None
    supervisor = of_model(choice, model.protocol(), files.train_cases) if choice and model else of_scores(files)
    for path in (cases, files.calibrate):
        if path:
            check_fits(supervisor, path, config)
    if model is None:
        return supervisor, files
    scores = write_scores(model, cases, result, name=supervisor.name)
    if not files.calibrate:
        return supervisor, files._replace(scores=scores)
    own = write_scores(model, files.calibrate, result, name=supervisor.name, part="calibrate_scores")
    return supervisor, files._replace(scores=scores, calibrate_scores=own)


def _threshold(seen: Survey, config: Config, files: Files) -> _Threshold:
    if files.calibrate is None:
        return _Threshold(config.tau or 0.0, None, None)
    assert files.calibrate_scores is not None
    held_out = survey(read_batches_scored(files.calibrate, files.calibrate_scores, config.only), config)
    found = calibrated(seen, held_out, config, where=str(files.calibrate))
    assert found.tau is not None, "a calibration that certifies nothing is refused"
    return _Threshold(found.tau, found, held_out)


def _summary(
    config: Config, supervisor: Supervisor, filtered: Filtered, seen: Survey, threshold: _Threshold
) -> dict[str, Any]:
    trial = threshold.held_out.trial if threshold.held_out else seen.trial
    taus = {threshold.tau, *candidate_taus(seen.margins)}
    calibration = threshold.calibration and {
        "precision": config.precision,
        "confidence": config.confidence or DEFAULT_CONFIDENCE,
        "num_judgments": len(trial.prompt),
        "num_prompts": int(trial.prompt.max()) + 1,
        "points": [point._asdict() for point in threshold.calibration.points],
    }
    return {
        "policy": config.policy,
        "tau": threshold.tau if config.policy == "agree" else None,
        "supervisor": supervisor.as_row(),
        "coverage": {
            "judgments": filtered.counts.num_used / max(filtered.counts.num_in, 1),
            "strict": filtered.num_strict_kept / max(filtered.num_strict, 1),
            "prompts": filtered.num_prompts_kept / max(filtered.num_prompts, 1),
        },
        "num_strict": filtered.num_strict,
        "num_strict_kept": filtered.num_strict_kept,
        "by_tau": by_tau(seen, trial, sorted(taus), seed=config.seed) if config.policy == "agree" else [],
        "precision_from": _source(threshold, seen),
        "calibration": calibration,
    }


def _source(threshold: _Threshold, seen: Survey) -> str | None:
    """Where the precisions in the table by tau are from."""
    if threshold.held_out:
        return "the calibration cases"
    return "people's judgments in the supervised cases" if len(seen.trial.prompt) else None
