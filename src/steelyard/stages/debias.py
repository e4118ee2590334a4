"""The verb `debias`: of pairs that a feature such as length favors, drop as many as needed to balance both sides.

The file is read twice: once to measure its pairs, once to write those that stay.
"""

from functools import partial
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.numerics import Booleans
from steelyard.core.remedies import FILE, Advice, Command, Remedy
from steelyard.core.text import num_characters, number_of, response_text, verb_for
from steelyard.core.types import Case, Counts, Pair, Response, Run
from steelyard.curation.debiasing import (
    BeforeAfter,
    Config,
    DebiasedAccuracy,
    DebiasSummary,
    GroupBalance,
    Length,
    PairSurvey,
    balance_sides,
    count_sides,
    survey_pairs,
)
from steelyard.curation.input_checks import below_chance, check_cases
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import FileCases, encode_case, read_cases
from steelyard.io.lines import check_readable
from steelyard.io.progress import track
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.scored_cases import JoinedScores
from steelyard.io.verbs import Argument, CaseFile, Option, ScoreFile, SettingOption, Verb
from steelyard.ranking.pairs import UNLISTED, IndexedPair, listed_pairs, pairs_of
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import share_of

_DEFAULT = Config()
_DOWNSAMPLED = "downsampled"


VERB = Verb(
    "Judgments",
    44,
    (
        Argument("cases", "The case file with rankings or pairs."),
        Option("out", "The folder for cases.jsonl and run.json."),
        SettingOption("by"),
        SettingOption("within"),
        SettingOption("tokenizer"),
        Option("scores", "Scores of a model, to show its accuracy before and after."),
        SettingOption("pairs"),
        SettingOption("seed"),
    ),
)


def debias(
    cases: CaseFile, out: Path, config: Config = _DEFAULT, *, scores: ScoreFile | None = None, force: bool = False
) -> Run[DebiasSummary]:
    """Balance training pairs: as many whose better answer is longer as whose better answer is shorter.

    The larger side is thinned out at random; pairs of equal length stay. ``by="markdown"`` counts marks of Markdown
    instead, ``by="author"`` balances every two authors. The pairs that stay are listed in OUT/cases.jsonl for training.

    Balanced counts alone do not show that a bias is gone: with ``scores`` the model's accuracy is measured before and
    after, on all pairs and on those of about equal length (10 %, or with ``scores`` also ``length_tolerance=0.05``).

    Example: `steelyard debias resolved/cases.jsonl --out debiased --within language`

    Example: `steelyard debias resolved/cases.jsonl --out debiased --scores scored/scores.jsonl`

    Raises ConfigError for a setting without effect; EvidenceError for cases without pairs, or in which none would stay.

    >>> rows = [{"prompt": f"{word}?", "chosen": word, "rejected": "no"} for word in ("a", "yes", "sure")]
    >>> sy.debias(rows).table[0]["before_num_more"], sy.debias(rows).table[0]["after_num_more"]
    (2, 1)
    """
    check_settings(config, with_scores=scores is not None)
    inputs = {"cases": cases, **({"scores": scores} if scores else {})}
    for path in inputs.values():
        check_readable(path)
    settings = msgspec.to_builtins(config)
    if config.tokenizer and Path(config.tokenizer).exists():
        inputs["tokenizer"] = Path(config.tokenizer)
        settings["tokenizer"] = Path(config.tokenizer).name

    def write(result: Result) -> None:
        joined = None if scores is None else JoinedScores(FileCases(cases), scores)
        read = ((case, None) for case in read_cases(cases)) if joined is None else joined
        survey = survey_pairs(track(read, "debias: measuring"), config, length_of(config.tokenizer))
        stays = _choose_pairs(survey, config, where=str(cases))
        num_without = _write(result, cases, config, stays)
        result.counts = count_pairs(survey, stays, num_without)
        result.summary = summarize(survey, stays, config, with_scores=scores is not None)
        result.findings = check_cases(
            read_cases(cases),
            partial(pairs_of, choice=config.pairs),
            needs_language=config.within in ("language", "both"),
        )
        if scores is not None and joined is not None:
            inputs = result.request.inputs
            result.findings += joined.coverage.findings(inputs["scores"], [inputs["cases"]])
            accuracy = share_of(survey.prompt, ~np.isnan(survey.margin), survey.margin > 0, seed=config.seed)
            result.findings += below_chance(accuracy, int((survey.margin < 0).sum()), model=scores.name)

    return run_stage(out, "debias", Run[DebiasSummary], write, config=settings, inputs=inputs, force=force)


def check_settings(config: Config, *, with_scores: bool) -> None:
    """Raises ConfigError for a setting without effect, and for a share outside its range."""
    if config.tokenizer is not None and config.by == "author":
        raise ConfigError("tokenizer with by=author", do="a tokenizer measures length")
    if config.length_tolerance is None:
        return
    if not with_scores:
        raise ConfigError(
            f"length_tolerance is {config.length_tolerance}, and there are no scores",
            where="debias",
            do=Advice(
                "give ",
                Remedy("scores", FILE),
                ": length_tolerance selects the pairs on which their accuracy is measured",
            ),
        )
    if not 0 <= config.length_tolerance < 1:
        raise ConfigError(
            f"length_tolerance is {config.length_tolerance}", where="debias", allowed="0 or more, and below 1"
        )


def length_of(tokenizer: str | None) -> Length:
    """Return the length of a response: characters, or tokens of a tokenizer without its special tokens."""
    if tokenizer is None:
        return num_characters
    from steelyard.networks.loading import load_tokenizer

    loaded = load_tokenizer(tokenizer)
    loaded.model_max_length = 2**62  # counting needs no limit, and no warning of one

    def num_tokens(response: Response) -> float:
        return float(
            len(loaded(response_text(response), add_special_tokens=False, split_special_tokens=True).input_ids)
        )

    return num_tokens


def _choose_pairs(survey: PairSurvey, config: Config, *, where: str) -> Booleans:
    """Return which pairs stay. Raises EvidenceError where there is nothing to balance, or no pair would stay."""
    if not len(survey.side):
        raise EvidenceError("no case has a pair", where=where, do=Advice("rank the cases first: ", Command("resolve")))
    if config.by == "author" and not survey.side.any():
        raise EvidenceError("no pair has two different known authors", where=where, do="debias by another feature")
    stays = balance_sides(survey.side, survey.group, survey.priority)
    if not stays.any():
        raise EvidenceError(
            f"all {number_of(len(stays), 'pair')} {verb_for(len(stays), 'is', 'are')} on one side: nothing would stay",
            where=where,
            do="debias by another feature",
        )
    return stays


def _write(result: Result, cases: Path, config: Config, stays: Booleans) -> int:
    """Write the cases with the pairs that stay. Returns how many cases had pairs and have none left."""
    stays_next = iter(stays.tolist())
    num_without = 0
    with atomic_write(result.path("cases.jsonl")) as file:
        for case in read_cases(cases):
            indexed = pairs_of(case, config.pairs)
            pairs = zip(_listed(case, indexed, config), islice(stays_next, len(indexed)), strict=True)
            listed = tuple(pair for pair, stay in pairs if stay)
            num_without += bool(indexed) and not listed
            file.write(encode_case(msgspec.structs.replace(case, pairs=listed)))
    return num_without


def _listed(case: Case, indexed: tuple[IndexedPair, ...], config: Config) -> tuple[Pair, ...]:
    """Return the pairs as a case lists them; listed pairs stay as they are, with weight and margin."""
    if case.pairs is not None and config.pairs in (None, "listed"):
        return case.pairs
    return listed_pairs(case, indexed)


def count_pairs(survey: PairSurvey, stays: Booleans, num_without: int) -> Counts:
    """Return the counts of pairs; ``num_without`` cases had pairs and have none left."""
    num_dropped = int((~stays).sum())
    noted = {
        "cases": len(survey.pairs_of_case),
        "cases without a pair": int((survey.pairs_of_case == 0).sum()),
        "cases left without a pair": num_without,
        "pairs on neither side": int((survey.side == 0).sum()),
        UNLISTED: survey.num_unlisted,
    }
    return Counts(
        num_in=len(stays),
        num_used=int(stays.sum()),
        dropped={_DOWNSAMPLED: num_dropped} if num_dropped else {},
        noted={name: number for name, number in noted.items() if number},
    )


def summarize(survey: PairSurvey, stays: Booleans, config: Config, *, with_scores: bool) -> DebiasSummary:
    """Return the sides before and after, overall and by group, and the accuracy of the scores."""
    subsets = np.ones(len(stays), bool), stays
    overall = (count_sides(survey.side[subset], np.zeros(int(subset.sum()), np.int64), 1)[0] for subset in subsets)
    by_group = (count_sides(survey.side[subset], survey.group[subset], len(survey.groups)) for subset in subsets)

    def share(counted: Booleans, right: Booleans) -> BeforeAfter[Estimate]:
        return BeforeAfter(*(share_of(survey.prompt, subset & counted, right, seed=config.seed) for subset in subsets))

    accuracy = None
    if with_scores:
        is_scored, is_right = ~np.isnan(survey.margin), survey.margin > 0
        accuracy = DebiasedAccuracy(
            num_unscored=int((~is_scored).sum()),
            length_tolerance=config.tolerance,
            all=share(is_scored, is_right),
            length_matched=share(is_scored & survey.is_matched, is_right),
            better_is_longer=share(is_scored & survey.is_longer, is_right),
            better_is_not_longer=share(is_scored & ~survey.is_longer, is_right),
        )
    return DebiasSummary(
        by=config.by,
        unit=f"tokens of {config.tokenizer}" if config.tokenizer else "characters",
        within=config.within,
        overall=BeforeAfter(*overall),
        groups=tuple(GroupBalance(*row) for row in zip(survey.groups, *by_group, strict=True)),
        longer_is_better=share(subsets[0], survey.is_longer),
        accuracy=accuracy,
    )
