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
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, Counts, Run
from steelyard.curation.data_checks import (
    MOST_LISTED,
    NGRAMS,
    AuditSummary,
    ConflictedPrompt,
    DisputedPair,
    DisputedPairs,
    LabelledPairs,
    disputed_pairs,
    find_duplicates,
    label_margins,
    labelled_pairs,
    measure_lengths,
)
from steelyard.curation.input_checks import below_chance, check_cases
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import read_cases
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.scored_cases import JoinedScores
from steelyard.io.verbs import CASES, ONLY, CaseFile, Option, ScoreFile, SettingOption, Verb
from steelyard.ranking.judgment_table import EVERYTHING, NONE, REPEATED, Only, judgment_table
from steelyard.ranking.pairs import PairChoice, pairs_of
from steelyard.ranking.resolution import resolve_table
from steelyard.report.case_analysis import analyze_case
from steelyard.statistics.temperature import fit_inverse_temperature

SUSPECTS_FILE = "disputed.jsonl"
_FEWEST_PROMPTS = 20


class Config(BaseConfig, frozen=True):
    """Settings of an audit."""

    pairs: PairChoice | None = None
    """Which pairs are the labels. Default: the pairs that a case lists, or else every pair across tiers."""
    confidence: float = 0.8
    """The probability that a label is wrong from which its pair is called a suspect, by the model's margin."""
    near_duplicates: float = 0.8
    """The similarity of prompts (Jaccard, of character shingles) from which they are duplicates."""
    folds: int = 5
    """The number of folds, by which a prompt is scored by a model without it."""
    only: Only = EVERYTHING
    """The judgments whose conflicts and raters count."""


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
    _check(config)

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
        num_conflicted, conflicted = _conflicted(data, config.only)
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
        )

    inputs = {"cases": cases} | ({"scores": scores} if scores else {})
    return run_stage(out, "audit", Run[AuditSummary], write, config=config, inputs=inputs, force=force)


def _check(config: Config) -> None:
    if not 0.5 < config.confidence < 1:
        raise ConfigError(f"confidence is {config.confidence}", where="audit", allowed="above 0.5 and below 1")
    if not 0 < config.near_duplicates <= 1:
        raise ConfigError(f"near_duplicates is {config.near_duplicates}", where="audit", allowed="above 0, at most 1")
    if config.folds < 2:
        raise ConfigError(f"folds is {config.folds}", where="audit", allowed="2 or more")


def _disputed(
    data: Sequence[Case], pairs: LabelledPairs, config: Config, path: Path, joined: JoinedScores | None
) -> tuple[DisputedPairs | None, str | None, tuple[DisputedPair, ...]]:
    """Return the labels that the model disputes, or the reason for none; ``path`` is the file of scores or of cases."""
    num_prompts = len(np.unique(pairs.unit))
    if num_prompts < _FEWEST_PROMPTS:
        have = verb_for(num_prompts, "has", "have")
        return None, f"{number_of(num_prompts, 'prompt')} {have} an ordered pair, {_FEWEST_PROMPTS} are needed", ()
    if joined is None:
        from steelyard.plugins.models.ngram import Config as NgramConfig
        from steelyard.plugins.models.ngram import NgramModel

        name = NGRAMS
        model = NgramModel(NgramConfig(train=str(path), pairs=config.pairs, folds=config.folds))
        try:
            scored = tuple(model.score(data))
        except EvidenceError as error:  # no text to learn from, or no pair without a fold
            return None, error.problem, ()
    else:
        name, scored = path.name, tuple(row.scores for row in joined)
    margin = label_margins(data, pairs, scored)
    if np.isnan(margin).all():
        raise EvidenceError("no pair has two scores", where=str(path), do="score these cases first")
    inverse_temperature = fit_inverse_temperature(margin[~np.isnan(margin)]).value
    summary, rows = disputed_pairs(data, pairs, margin, inverse_temperature, model=name, confidence=config.confidence)
    return summary, None, rows


def _conflicted(data: Sequence[Case], only: Only) -> tuple[int, tuple[ConflictedPrompt, ...]]:
    """Return how many prompts have a conflict, and those with the largest share of conflicting judgments."""
    table = judgment_table(data, only)
    full = resolve_table(table).graphs.full
    verdicts = full.verdicts
    num_read = np.bincount(verdicts.graph[verdicts.verdict != NONE], minlength=len(data))
    num_conflicting = np.bincount(verdicts.graph[verdicts.is_strict & ~full.is_kept], minlength=len(data))
    order = np.lexsort((-num_conflicting, -num_conflicting / np.maximum(num_read, 1)))
    worst = [place for place in order[:MOST_LISTED].tolist() if num_conflicting[place]]
    rows = []
    for place in worst:
        analysis = analyze_case(data[place], only=only)
        cycle = analysis.cycles[0]
        names = [analysis.labels[name] for name in cycle.circle]
        shown = " ".join([names[0], *(f"{sign} {name}" for sign, name in zip(cycle.signs, names[1:], strict=True))])
        rows.append(
            ConflictedPrompt(
                prompt=data[place].prompt.id,
                language=data[place].prompt.language,
                num_conflicting=int(num_conflicting[place]),
                num_judgments=int(num_read[place]),
                shown=shown,
                cycle=cycle.circle,
            )
        )
    return int((num_conflicting > 0).sum()), tuple(rows)
