"""The verb `supervise`: a reward model filters the judgments of LLMs and models (distant supervision).

Check the supervisor, score, choose the threshold, filter, and record what was dropped by which rule.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.core.types import Case, Run, Scores
from steelyard.curation.calibration import (
    MarginSurvey,
    ThresholdCalibration,
    calibrate_threshold,
    candidate_thresholds,
    check_judged,
    check_labelled,
    check_some_kept,
    rows_by_threshold,
    survey_margins,
    threshold_of_size,
)
from steelyard.curation.input_checks import below_chance, check_cases, judged_pairs
from steelyard.curation.supervised import (
    ScoredBatch,
    SupervisionCounter,
    count_strict,
    supervise_cases,
    with_margins,
)
from steelyard.curation.supervision import Config, SupervisionRule
from steelyard.evaluation.supervisor import (
    SupervisionCoverage,
    SupervisionFiles,
    SupervisionSummary,
    Supervisor,
    ThresholdCertificate,
    check_may_judge,
    check_supervision,
    supervisor_of_model,
    supervisor_of_scores,
)
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import FileCases, encode_case, read_cases
from steelyard.io.lines import check_readable
from steelyard.io.progress import track
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.scored_cases import JoinedScores, ScoredCase
from steelyard.io.verbs import (
    MODEL_SETTINGS,
    ONLY,
    Argument,
    CaseFile,
    ModelName,
    Option,
    ScoreFile,
    SettingOption,
    Verb,
)
from steelyard.plugins.reward_models import (
    Builder,
    ModelChoice,
    build_model,
    choose_model,
    forget_lines,
    judge_ledger,
    write_scores,
)
from steelyard.ranking.judgment_table import check_admits

_DEFAULT = Config()


class _Threshold(NamedTuple):
    """The threshold, its calibration and the survey of the calibration cases; null where the margin is a setting."""

    min_margin: float
    calibration: ThresholdCalibration | None
    held_out: MarginSurvey | None


VERB = Verb(
    "Judgments",
    43,
    (
        Argument("cases", "The case file with the judgments to filter."),
        Option("out", "The folder for cases.jsonl and manifest.jsonl."),
        Option("model", "The supervisor: a model's folder, or a kind.", complete="models"),
        Option("scores", "The supervisor's scores, instead of a model."),
        SettingOption("policy"),
        SettingOption("min_margin"),
        SettingOption("keep_ties"),
        Option("calibration_cases", "Held-out cases judged by people, for the margin."),
        Option("calibration_scores", "The supervisor's scores of those cases."),
        SettingOption("min_precision"),
        SettingOption("confidence"),
        Option("train_cases", "The supervisor's training cases: it judges none."),
        SettingOption("allow_other_languages"),
        Option("as_many_as", "A filtered file: as many judgments are kept."),
        ONLY,
        *MODEL_SETTINGS,
    ),
)


def supervise(
    cases: CaseFile,
    out: Path,
    config: Config = _DEFAULT,
    *,
    model: ModelName | None = None,
    scores: ScoreFile | None = None,
    calibration_cases: CaseFile | None = None,
    calibration_scores: ScoreFile | None = None,
    train_cases: CaseFile | None = None,
    as_many_as: CaseFile | None = None,
    builder: Builder | None = None,
    force: bool = False,
) -> Run[SupervisionSummary]:
    """Let a reward model trained on human judgments filter those of an LLM (distant supervision).

    Policies: `agree` keeps a strict verdict if the model's margin for it is above 0 and at least ``min_margin``, and
    drops ties; `cycles` drops only what closes a cycle, the pairs with the smallest margin first; `weight` drops
    nothing and lists each pair with the model's belief in it as its weight.

    OUT/cases.jsonl has what is kept, ranked again; manifest.jsonl has each dropped judgment with its rule.

    With ``calibration_cases``, the threshold is the smallest margin at which the kept verdicts are right as often as
    ``min_precision`` asks. That file needs judgments by people and by the LLM on the same pairs.

    Example: `steelyard supervise llm.jsonl --model my-rm --out supervised --min-margin 0.5`

    Example: `steelyard supervise llm.jsonl --model my-rm --out calibrated --calibration-cases held_out.jsonl
    --min-precision 0.9`

    Example: `steelyard supervise llm.jsonl --scores scored/scores.jsonl --out acyclic --policy cycles`

    Raises ConfigError for contradictory settings; ModelError and EvidenceError for a supervisor that may not judge
    these cases; EvidenceError for a threshold that drops everything, or if no threshold is certified.

    >>> judged = sy.simulate(num_prompts=48, seed=1)["llm"]
    >>> kept = sy.supervise(judged, model="longer", min_margin=1.0, allow_other_languages=True)
    >>> kept.counts.num_in == kept.counts.num_used + sum(kept.counts.dropped.values())
    True
    """
    files = SupervisionFiles(model, scores, calibration_cases, calibration_scores, train_cases, as_many_as)
    check_supervision(config, files)
    choice = choose_model(model, config.model) if model else None
    inputs = {"cases": cases} | {role: path for role, path in files._asdict().items() if isinstance(path, Path)}
    for path in inputs.values():
        check_readable(path)
    settings = msgspec.to_builtins(config)
    if choice:
        inputs |= choice.inputs()
        settings |= {"kind": choice.kind, "model": choice.settings}
    write = partial(_run, cases=cases, config=config, files=files, choice=choice, builder=builder or build_model)
    return run_stage(out, "supervise", Run[SupervisionSummary], write, config=settings, inputs=inputs, force=force)


def _run(
    result: Result,
    cases: Path,
    config: Config,
    files: SupervisionFiles,
    *,
    choice: ModelChoice | None,
    builder: Builder,
) -> None:
    check_admits(config.only, read_cases(cases), where=str(cases))
    if files.calibration_cases:
        # Refused before an hour of scoring: the judgments alone show whether people and judges overlap.
        unscored = survey_margins(
            with_margins(map(_without_scores, read_cases(files.calibration_cases)), config.only),
            human_ties=config.human_ties,
        )
        check_labelled(unscored, where=str(files.calibration_cases))
    supervisor, files = _score(result, cases, config, files, choice=choice, builder=builder)
    assert files.scores is not None
    joined = JoinedScores(FileCases(cases), files.scores)
    survey = survey_margins(with_margins(joined, config.only), human_ties=config.human_ties)
    inputs = result.request.inputs
    result.findings = check_cases(
        read_cases(cases),
        judged_pairs,
        needs_language=not config.allow_other_languages and _knows_languages(supervisor),
        reads_ties=True,
    )
    if "scores" in inputs:
        result.findings += joined.coverage.findings(inputs["scores"], [inputs["cases"]])
    check_judged(survey, where=str(cases))
    num_reversed = int((survey.margins < 0).sum())
    result.findings += below_chance(survey.agreement(config.seed), num_reversed, model=supervisor.name)
    if config.policy == "agree" and files.as_many_as is None:
        scores = str(files.scores) if choice else None
        check_some_kept(survey, config.min_margin or 0.0, where=str(cases), scores=scores)
    threshold = _threshold(survey, config, files, result)
    rule = config.rule(threshold.min_margin)
    counter = _write(with_margins(joined, config.only), rule, result)
    result.counts = counter.counts()
    result.summary = _summarize(config, supervisor, counter, survey, threshold)
    forget_lines(result)


def _knows_languages(supervisor: Supervisor) -> bool:
    """Return whether the languages of all training prompts are known, so that others are refused."""
    training = supervisor.prompts()
    return training is not None and bool(training.languages) and "" not in training.languages


def _score(
    result: Result,
    cases: Path,
    config: Config,
    files: SupervisionFiles,
    *,
    choice: ModelChoice | None,
    builder: Builder,
) -> tuple[Supervisor, SupervisionFiles]:
    """Return the supervisor, which may judge all prompts, and the files with the paths of the scores."""
    model = None
    if choice:
        # A judge keeps its replies itself: no request is repeated.
        model = builder(choice, ledger=judge_ledger(choice, result))
        supervisor = supervisor_of_model(choice, model.protocol(), files.train_cases)
    else:
        assert files.scores is not None
        supervisor = supervisor_of_scores(files.scores, files.calibration_scores, files.train_cases)
    for path in (cases, files.calibration_cases):
        if path:
            check_may_judge(
                supervisor, path, compare_ids=config.compare_ids, allow_other_languages=config.allow_other_languages
            )
    if model is None:
        return supervisor, files
    files = files._replace(scores=write_scores(model, FileCases(cases), result, name=supervisor.name))
    if files.calibration_cases:
        held_out = FileCases(files.calibration_cases)
        scores = write_scores(model, held_out, result, name=supervisor.name, part="calibration_scores")
        files = files._replace(calibration_scores=scores)
    return supervisor, files


def _threshold(survey: MarginSurvey, config: Config, files: SupervisionFiles, result: Result) -> _Threshold:
    if files.as_many_as is not None:
        number = count_strict(read_cases(files.as_many_as), config.only)
        if config.policy == "closest":
            survey = survey._replace(margins=-np.abs(survey.margins))
        return _Threshold(threshold_of_size(survey, number, where=str(files.as_many_as)), None, None)
    if files.calibration_cases is None:
        return _Threshold(config.min_margin or 0.0, None, None)
    assert files.calibration_scores is not None
    assert config.min_precision is not None
    joined = JoinedScores(FileCases(files.calibration_cases), files.calibration_scores)
    held_out = survey_margins(with_margins(joined, config.only), human_ties=config.human_ties)
    inputs = result.request.inputs
    if "calibration_scores" in inputs:
        result.findings += joined.coverage.findings(inputs["calibration_scores"], [inputs["calibration_cases"]])
    calibration = calibrate_threshold(
        survey,
        held_out,
        precision=config.min_precision,
        confidence=config.confidence_level,
        seed=config.seed,
        where=str(files.calibration_cases),
    )
    assert calibration.threshold is not None, "a calibration that certifies nothing is refused"
    return _Threshold(calibration.threshold, calibration, held_out)


def _write(batches: Iterable[ScoredBatch], rule: SupervisionRule, result: Result) -> SupervisionCounter:
    """Write ``cases.jsonl`` and ``manifest.jsonl``; both take their names when both are complete."""
    counter = SupervisionCounter(rule)
    with atomic_write(result.path("manifest.jsonl")) as manifest, atomic_write(result.path("cases.jsonl")) as file:
        for batch in track(batches, "supervise (batches of cases)"):
            supervised = supervise_cases(batch, rule)
            for case in supervised.cases:
                file.write(encode_case(case))
            for judgment in supervised.dropped:
                manifest.write(msgspec.json.encode(judgment) + b"\n")
            counter.add(batch, supervised)
    return counter


def _summarize(
    config: Config, supervisor: Supervisor, counter: SupervisionCounter, survey: MarginSurvey, threshold: _Threshold
) -> SupervisionSummary:
    counts = counter.counts()
    labelled = threshold.held_out.labelled if threshold.held_out else survey.labelled
    thresholds = {threshold.min_margin, *candidate_thresholds(survey.margins)}
    is_agree = config.policy == "agree"
    source = "people's judgments in the supervised cases" if len(survey.labelled.prompt) else None
    certificate = (
        None
        if threshold.calibration is None
        else ThresholdCertificate(
            precision=config.min_precision,
            confidence=config.confidence_level,
            num_judgments=len(labelled.prompt),
            num_prompts=int(labelled.prompt.max()) + 1,
            points=threshold.calibration.points,
        )
    )
    return SupervisionSummary(
        policy=config.policy,
        min_margin=threshold.min_margin if is_agree else None,
        max_difference=-threshold.min_margin if config.policy == "closest" else None,
        supervisor=supervisor,
        coverage=SupervisionCoverage(
            judgments=counts.num_used / max(counts.num_in, 1),
            strict=counter.num_strict_kept / max(counter.num_strict, 1),
            prompts=counter.num_prompts_kept / max(counter.num_prompts, 1),
        ),
        num_strict=counter.num_strict,
        num_strict_kept=counter.num_strict_kept,
        by_threshold=tuple(rows_by_threshold(survey, labelled, sorted(thresholds), seed=config.seed))
        if is_agree
        else (),
        precision_from="the calibration cases" if threshold.held_out else source,
        calibration=certificate,
    )


def _without_scores(case: Case) -> ScoredCase:
    scores = dict.fromkeys([response.id for response in case.responses])
    return ScoredCase(case, Scores(prompt=case.prompt.id, language=case.prompt.language, scores=scores))
