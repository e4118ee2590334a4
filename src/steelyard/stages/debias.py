"""The verb `debias`: of pairs that a feature such as length favors, drop as many as needed to balance both sides.

The file is read twice: once to measure its pairs, once to write those that stay.
"""

from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from steelyard.core.numerics import Booleans
from steelyard.core.text import num_characters
from steelyard.core.types import Case, Pair, Run
from steelyard.curation.debiasing import (
    Config,
    DebiasSummary,
    Length,
    check_settings,
    choose_pairs,
    count_pairs,
    summarize,
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
from steelyard.ranking.pairs import IndexedPair, listed_pairs, pairs_of

_DEFAULT = Config()


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
        length: Length = num_characters
        if config.tokenizer is not None:
            from steelyard.networks.token_counts import response_tokens

            length = response_tokens(config.tokenizer)
        joined = None if scores is None else JoinedScores(FileCases(cases), scores)
        read = ((case, None) for case in read_cases(cases)) if joined is None else joined
        survey = survey_pairs(track(read, "debias: measuring"), config, length)
        stays = choose_pairs(survey, config, where=str(cases))
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
            accuracy = survey.accuracy(seed=config.seed)
            result.findings += below_chance(accuracy, int((survey.margin < 0).sum()), model=scores.name)

    return run_stage(out, "debias", Run[DebiasSummary], write, config=settings, inputs=inputs, force=force)


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
