"""The verb `audit`: which data to check. Conflicts, labels that a model disputes, duplicates, and lengths.

Nothing is changed or dropped. By default the model is a character n-gram model in folds: each prompt is scored by a fit
without its fold, so that no label is judged by a model that has read it.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from steelyard.annotation.case_answers import summarise_raters
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Counts, Run
from steelyard.curation.data_checks import (
    NGRAMS,
    AuditSummary,
    Config,
    DisputedPair,
    DisputedPairs,
    LabelledPairs,
    check_settings,
    disputed_pairs,
    find_duplicates,
    label_margins,
    labelled_pairs,
    lack_of_prompts,
    measure_lengths,
)
from steelyard.curation.input_checks import below_chance, check_cases
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import read_cases
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.scored_cases import JoinedScores
from steelyard.io.verbs import CASES, ONLY, CaseFile, Option, ScoreFile, SettingOption, Verb
from steelyard.ranking.judgment_table import REPEATED
from steelyard.ranking.pairs import pairs_of
from steelyard.report.case_analysis import worst_conflicts
from steelyard.statistics.temperature import fit_inverse_temperature

SUSPECTS_FILE = "disputed.jsonl"


_DEFAULT = Config()


VERB = Verb(
    "Data",
    23,
    (
        CASES,
        Option("out", "The folder for disputed.jsonl and run.json."),
        Option("scores", "Scores of a model that was not trained on these prompts."),
        SettingOption("confidence"),
        SettingOption("near_duplicates"),
        ONLY,
    ),
)


def audit(
    cases: CaseFile, out: Path, config: Config = _DEFAULT, *, scores: ScoreFile | None = None, force: bool = False
) -> Run[AuditSummary]:
    """Find data and raters to check: labels that a model disputes, conflicts, duplicates, odd lengths, reliability.

    Nothing is changed or dropped. The labels are the pairs of the rankings, or those that a case lists. Character
    n-grams in folds judge them: each prompt is scored by a fit without it. ``scores`` takes the scores of a better
    model instead, which must not have been trained on these prompts. OUT/disputed.jsonl has the disputed labels, the
    least probable first, and the report of the run shows the findings.

    Where several raters judged the same prompts, people or models, the reliability of each is estimated: the
    probability that a strict verdict on two random responses has the right direction. No truth is needed: a rater who
    contradicts good raters is less reliable. Errors that all raters share are not seen, so that models which err alike
    look good together; ``only=["kind=human"]`` leaves them out. An estimate needs 10 answers to shared prompts, and
    more than half of the rater's: of several answers of a rater to one prompt it can use one.

    Example: `steelyard audit resolved/cases.jsonl --out audited`

    Example: `steelyard audit resolved/cases.jsonl --scores scored/scores.jsonl --out audited --confidence 0.9`

    >>> audited = sy.audit(cases)
    >>> audited.summary.num_conflicted
    0
    >>> len(audited.rows("disputed"))
    0
    >>> raters = sy.audit(sy.simulate(num_prompts=48, seed=1).cases).summary.raters
    >>> raters.raters[0].accuracy.value > 0.6
    True
    """
    check_settings(config)

    def write(result: Result) -> None:
        data = tuple(read_cases(cases))
        pairs = labelled_pairs(data, config.pairs)
        joined = None if scores is None else JoinedScores(data, scores)
        result.findings = check_cases(data, partial(pairs_of, choice=config.pairs))
        summary, why, rows = _disputed(data, pairs, config, scores or cases, joined)
        if joined is not None:
            inputs = result.request.inputs
            result.findings += joined.coverage.findings(inputs["scores"], [inputs["cases"]])
            if summary is not None:
                result.findings += below_chance(summary.accuracy, summary.num_disputed, model=summary.model)
        with atomic_write(result.path(SUSPECTS_FILE)) as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
        num_conflicted, conflicted = worst_conflicts(data, config.only)
        repeated = sum(
            sum(config.only.admits(case.judgments)) - sum(config.only.votes(case.judgments)) for case in data
        )
        noted = {"pairs": len(pairs.case)} | ({REPEATED: repeated} if repeated else {})
        result.counts = Counts(num_in=len(data), num_used=len(data), noted=noted)
        result.summary = AuditSummary(
            num_cases=len(data),
            num_conflicted=num_conflicted,
            conflicted=conflicted,
            disputed=summary,
            why_not_disputed=why,
            duplicates=find_duplicates(data, pairs, config.near_duplicates),
            lengths=measure_lengths(data, pairs),
            raters=summarise_raters(data, config.only.votes),
            num_unranked=sum(case.ranking is None and case.pairs is None and bool(case.judgments) for case in data)
            if config.pairs in (None, "tiers")
            else 0,
        )

    inputs = {"cases": cases} | ({"scores": scores} if scores else {})
    return run_stage(out, "audit", Run[AuditSummary], write, config=config, inputs=inputs, force=force)


def _disputed(
    data: Sequence[Case], pairs: LabelledPairs, config: Config, path: Path, joined: JoinedScores | None
) -> tuple[DisputedPairs | None, str | None, tuple[DisputedPair, ...]]:
    """Return the labels that the model disputes, or the reason for none; ``path`` is the file of scores or of cases."""
    # Read also where there are too few labels, so that scores of other cases are refused.
    model_scores = None if joined is None else tuple(row.scores for row in joined)
    lack = lack_of_prompts(pairs)
    if lack is not None:
        return None, lack, ()
    if model_scores is None:
        from steelyard.plugins.models.ngram import Config as NgramConfig
        from steelyard.plugins.models.ngram import NgramModel

        name = NGRAMS
        model = NgramModel(NgramConfig(train=str(path), pairs=config.pairs, folds=config.folds))
        try:
            scored = tuple(model.score(data))
        except EvidenceError as error:  # no text to learn from, or no pair without a fold
            return None, error.problem, ()
    else:
        name, scored = path.name, model_scores
    margin = label_margins(data, pairs, scored)
    if np.isnan(margin).all():
        raise EvidenceError("no pair has two scores", where=str(path), do="score these cases first")
    inverse_temperature = fit_inverse_temperature(margin[~np.isnan(margin)]).value
    summary, rows = disputed_pairs(data, pairs, margin, inverse_temperature, model=name, confidence=config.confidence)
    return summary, None, rows
