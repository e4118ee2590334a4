"""The verb `best-of-n`: how good, by gold, the response is that a reward model chooses among N, and where that peaks.

The cases are read twice: once for the curve, once to write the responses chosen, training pairs, and the next turns.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, EvidenceError, choices
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Counts, Kind, Run, Scores
from steelyard.curation.input_checks import check_cases
from steelyard.evaluation.best_of_n import (
    BestOfNSummary,
    budgets_from_one,
    curve_table,
    draw_curves,
    estimate_curve,
    estimate_wins,
    largest_shared,
)
from steelyard.evaluation.best_of_n_ppi import (
    PPIWins,
    estimate_ppi_curve,
    estimate_ppi_wins,
    ppi_tables,
)
from steelyard.evaluation.candidates import (
    CandidateColumns,
    ColumnCollector,
    GoldChoice,
    GoldKind,
    ScoredCandidates,
    candidates_of,
    choose_gold,
    gold_scale,
    next_turn,
    select,
    training_pair,
    with_responses_only,
)
from steelyard.evaluation.overlap import check_overlap, count_shared, overlap_findings
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import FileCases, encode_case, read_cases
from steelyard.io.lines import check_readable
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.scored_cases import JoinedScores
from steelyard.io.verbs import CASES, CaseFile, Option, ScoreFile, SettingOption, Verb

_NO_CANDIDATE = "no scored candidate"
_FEWER = "fewer candidates than n"
_NO_BASELINE = "no response of the baseline"


class Config(BaseConfig, frozen=True):
    """Which gold values count, how long the curve is, and among how many candidates one is chosen."""

    n: Positive | None = None
    """The number of candidates, drawn at random, among which one is chosen for OUT/cases.jsonl. Default: all."""
    largest: Positive | None = None
    """The largest N of the curve. Default: the largest that 90 % of the usable prompts have candidates for."""
    gold: GoldKind | None = None
    """The gold values: ratings, tiers, judgments, scores (of gold_scores), or none. Default: the first present."""
    dimension: str | None = None
    """The dimension of the gold ratings, higher is better. Default: the only one."""
    gold_by: Kind | None = None
    """Whose ratings or judgments are gold: human, llm or model. Default: the only kind."""
    proxy_by: Kind | None = None
    """Whose ratings or judgments are the proxy on all prompts, where only some have gold values."""
    baseline_author: str | None = None
    """The author whose response is the baseline, and no candidate."""
    overlap: float = 0.8
    """The similarity (Jaccard, of character n-grams) from which a prompt counts as one of the bench or the training."""
    allow_overlap: bool = False
    """Go on although prompts are in the bench or the training data; they are counted."""
    num_resamples: Positive = 1000
    """The number of bootstrap resamples."""
    seed: int = 0
    """The seed of draws, ties and resamples."""


_DEFAULT = Config()

VERB = Verb(
    "Models",
    57,
    (
        CASES,
        Option("scores", "The scores of the reward model that chooses."),
        Option("out", "The folder for cases.jsonl, pairs.jsonl, next_turn.jsonl and run.json."),
        SettingOption("n"),
        SettingOption("largest"),
        SettingOption("gold"),
        SettingOption("dimension"),
        SettingOption("gold_by"),
        SettingOption("proxy_by"),
        Option("gold_scores", "Scores of a larger model or a judge: gold, or a proxy where gold is another."),
        Option("baseline", "Cases with one response a prompt: the baseline."),
        SettingOption("baseline_author"),
        Option("against", "A bench in which the prompts must not be; repeat."),
        Option("train_cases", "Training cases in which the prompts must not be; repeat."),
        SettingOption("allow_overlap"),
        SettingOption("seed"),
    ),
)


class _Files(NamedTuple):
    """The inputs of the verb."""

    cases: Path
    scores: Path
    gold_scores: Path | None
    baseline: Path | None
    against: Sequence[Path]
    train_cases: Sequence[Path]

    def inputs(self) -> dict[str, Path]:
        """Return the paths by role."""
        roles = {"cases": self.cases, "scores": self.scores, "gold_scores": self.gold_scores, "baseline": self.baseline}
        roles |= {f"against.{place}": path for place, path in enumerate(self.against, 1)}
        roles |= {f"train_cases.{place}": path for place, path in enumerate(self.train_cases, 1)}
        return {role: path for role, path in roles.items() if path is not None}


def best_of_n(
    cases: CaseFile,
    scores: ScoreFile,
    out: Path,
    config: Config = _DEFAULT,
    *,
    gold_scores: ScoreFile | None = None,
    baseline: CaseFile | None = None,
    against: Sequence[CaseFile] = (),
    train_cases: Sequence[CaseFile] = (),
    force: bool = False,
) -> Run[BestOfNSummary]:
    """Show how good, by gold, the response is that a reward model chooses among N, for every N, and where that peaks.

    The mean over all draws of N candidates is exact. All N are of the same prompts, and a fall after the peak
    (over-optimisation) is tested. Gold values are ratings, tiers, judgments, or ``gold_scores``. Where only some
    prompts, drawn at random, have one of the first three, ``gold_scores`` or a judge's (``proxy_by``) are a proxy.

    OUT/cases.jsonl has the response chosen for each prompt, with that of the baseline for `judge`; OUT/pairs.jsonl the
    best and the worst one with the difference of scores as margin, for training; OUT/next_turn.jsonl the next turn of
    prompts of several turns, for `sample`.

    Example: `steelyard best-of-n cases.jsonl --scores scored/scores.jsonl --gold judgments --gold-by human --out best`

    Example: `steelyard best-of-n cases.jsonl --scores scored/scores.jsonl --n 4 --gold none --out chosen`

    Raises EvidenceError for cases without gold values or scored candidates, for a baseline among the candidates, and
    for prompts of the bench or the training data; ConfigError where several gold values leave a choice.

    >>> scored = sy.score("longer", cases)
    >>> chosen = sy.best_of_n(cases, scores=scored, gold="judgments", gold_by="human")
    >>> [point.n for point in chosen.summary.curve.points][:2]
    [1, 2]
    """
    files = _Files(cases, scores, gold_scores, baseline, against, train_cases)
    _check_settings(config, files)
    inputs = files.inputs()
    for path in inputs.values():
        check_readable(path)

    def write(result: Result) -> None:
        gold, proxy = GoldChoice("none"), None
        if config.gold != "none":
            has_scores = gold_scores is not None
            gold = choose_gold(read_cases(cases), config.gold, config.dimension, config.gold_by, has_scores=has_scores)
            if config.proxy_by is not None:
                proxy = choose_gold(read_cases(cases), gold.kind, gold.dimension, config.proxy_by, has_scores=False)
            elif has_scores and gold.kind != "scores":
                proxy = GoldChoice("scores", is_share=gold.kind in ("tiers", "judgments"))
        run = _Selecting(files, config, gold, proxy)
        seen = check_overlap(FileCases(cases), choice=None, scores=scores, is_allowed=config.allow_overlap)
        noted = dict(seen)
        for name, paths in (("prompts of a bench", against), ("prompts of the training data", train_cases)):
            for path in paths:
                shared = count_shared(cases, path, overlap=config.overlap, is_allowed=config.allow_overlap)
                if shared:
                    noted[name] = noted.get(name, 0) + shared
        columns, survey = run.survey()
        noted |= survey
        summary = run.summarize(columns, noted)
        result.summary, result.counts = run.write(result, summary, noted)
        inputs = result.request.inputs
        result.findings += check_cases(read_cases(cases), lambda case: (), reads_ties=True)
        result.findings += overlap_findings(FileCases(cases), seen, choice=None, scores=scores, train_cases=train_cases)
        result.findings += run.joined.coverage.findings(inputs["scores"], [inputs["cases"]])

    settings = msgspec.to_builtins(config)
    return run_stage(out, "best-of-n", Run[BestOfNSummary], write, config=settings, inputs=inputs, force=force)


def _check_settings(config: Config, files: _Files) -> None:
    if files.baseline is not None and config.baseline_author is not None:
        raise ConfigError("baseline and baseline_author", do="name one of them")
    if config.gold == "scores" and files.gold_scores is None:
        raise ConfigError("gold=scores without scores", do=Advice("give ", Remedy("gold_scores")))
    if config.gold == "none" and files.gold_scores is not None:
        raise ConfigError("gold=none with gold_scores", do=Advice("leave out ", Remedy("gold_scores")))
    if config.proxy_by is not None:
        if files.gold_scores is not None:
            raise ConfigError("proxy_by and gold_scores are two proxies", do="name one of them")
        if config.gold not in ("ratings", "judgments"):
            do = Advice("say ", Remedy("gold", "ratings"), " or ", Remedy("gold", "judgments"))
            raise ConfigError("proxy_by without gold values of the same kind", allowed="ratings, judgments", do=do)
        if config.gold_by in (None, config.proxy_by):
            do = Advice("say whose are gold: ", Remedy("gold_by", "human"))
            raise ConfigError(f"proxy_by={config.proxy_by} needs gold values of another kind of raters", do=do)
    if not 0 < config.overlap <= 1:
        raise ConfigError(f"overlap is {config.overlap}", allowed="a number above 0, up to 1")


class _Selecting:
    """One run: its files, its settings, its gold values and those of a proxy."""

    def __init__(self, files: _Files, config: Config, gold: GoldChoice, proxy: GoldChoice | None = None) -> None:
        self.files, self.config, self.gold, self.proxy = files, config, gold, proxy
        self.joined = JoinedScores(FileCases(files.cases), files.scores)
        self._has_turns = False
        self._baseline = {} if files.baseline is None else {case.key: case for case in read_cases(files.baseline)}

    def candidates(self) -> Iterator[tuple[ScoredCandidates, Scores | None]]:
        """Yield the candidates of every case, with the line of its gold scores."""
        path = self.files.gold_scores
        golden = None if path is None else JoinedScores(FileCases(self.files.cases), path)
        lines = iter(()) if golden is None else iter(golden)
        for case, line in self.joined:
            gold_line = None if golden is None else next(lines).scores
            author = self.config.baseline_author
            yield candidates_of(case, line, author, self._baseline.get(case.key)), gold_line
        # The file is read to its end, where a line of another case is refused.
        next(lines, None)

    def survey(self) -> tuple[CandidateColumns, dict[str, int]]:
        """Read all cases once, and count what their candidates lack."""
        collector = ColumnCollector(self.gold, self.proxy)
        noted = Counter[str]()
        num_cases = num_equal = most = 0
        every_author: set[str] = set()
        for each, gold_line in self.candidates():
            num_cases += 1
            most = max(most, len(each.scores))
            every_author |= {response.author for response in each.case.responses if response.author}
            self._has_turns = self._has_turns or each.has_next_turn
            noted["candidates"] += len(each.scores)
            noted["candidates without a score"] += each.num_unscored
            is_several = len(each.scores) > 1
            num_equal += is_several and len(set(each.scores.values())) == 1
            authors = {response.author for response in each.case.responses if response.id in each.scores}
            noted["prompts with candidates of one author"] += is_several and len(authors) == 1 and authors != {None}
            if self.gold.kind != "none":
                collector.add(each, gold_line)
        where = str(self.files.cases)
        author, n = self.config.baseline_author, self.config.n
        if author is not None and author not in every_author:
            problem = f"no response is of the author {author!r}"
            raise ConfigError(problem, where=where, allowed=choices(author, every_author))
        if n is not None and most and n > most:
            raise EvidenceError(
                f"n is {n}, and no prompt has so many candidates with a score", where=where, allowed=f"up to {most}"
            )
        if not noted["candidates"]:
            raise EvidenceError("no candidate has a score", where=where)
        noted["prompts whose candidates have equal scores"] = num_equal
        if num_equal == num_cases:
            raise EvidenceError("all candidates of every prompt have equal scores: they choose nothing", where=where)
        noted["candidates without a gold value"] = collector.num_without_gold
        values = "gold values" if self.proxy is None else "values of the proxy"
        noted[f"prompts with fewer than two candidates with {values}"] = collector.num_unusable
        if self.proxy is not None:
            noted["candidates without a value of the proxy"] = collector.num_without_proxy
        columns = collector.columns()
        if self.gold.kind != "none" and not columns.labels:
            raise EvidenceError(f"no prompt has two scored candidates with {values}", where=where)
        if self.gold.kind != "none" and columns.gold_sizes.max() < 2:
            raise EvidenceError("no prompt has two scored candidates with gold values", where=where)
        return columns, {name: number for name, number in noted.items() if number}

    def summarize(self, columns: CandidateColumns, noted: dict[str, int]) -> BestOfNSummary:
        """Estimate the curve and the win rates, and count the prompts with too few candidates for them."""
        config, gold, files = self.config, self.gold, self.files
        name = config.baseline_author if files.baseline is None else files.baseline.stem
        summary = BestOfNSummary(
            n=config.n,
            gold=gold.kind,
            dimension=gold.dimension,
            gold_by=gold.by,
            proxy_by=None if self.proxy is None else self.proxy.by or "scores",
            largest=None,
            baseline=name,
            num_pairs=0,
            num_next_turns=0,
        )
        if gold.kind == "none":
            return summary
        sizes = columns.gold_sizes
        largest = config.largest or largest_shared(sizes[sizes > 1], 0.9)
        if largest > sizes.max():
            problem = f"largest is {largest}, and no prompt has so many candidates with scores and gold values"
            raise EvidenceError(problem, where=str(files.cases), allowed=f"up to {sizes.max()}")
        budgets = budgets_from_one(largest)
        drawing = {"num_resamples": config.num_resamples, "seed": config.seed}
        scale = gold_scale(gold, columns.gold)
        powered = None
        if self.proxy is None:
            table = curve_table(columns.prompt, columns.score, columns.gold, len(sizes), budgets=budgets)
            is_long = ~np.isnan(table.chosen[:, 0])
            num_short = int((~is_long).sum())
            table = table._replace(chosen=table.chosen[is_long], oracle=table.oracle[is_long])
            curve = estimate_curve(draw_curves(columns.blocks(is_long, **drawing), table), table, scale)
        else:
            tables = ppi_tables(columns, budgets)
            num_short = tables.num_short
            curve = estimate_ppi_curve(tables, scale, **drawing)
            powered = estimate_ppi_wins(columns, budgets, **drawing)
        noted["prompts with fewer candidates than the largest N"] = num_short
        if powered is None:
            has_gold = ~np.isnan(columns.gold)
            arrays = columns.prompt[has_gold], columns.score[has_gold], columns.win[has_gold]
            credited = curve_table(*arrays, len(sizes), budgets=budgets).chosen
            has_win = ~np.isnan(credited.sum(axis=1))
            wins = ()
            if has_win.any():
                wins = estimate_wins(columns.blocks(has_win, **drawing), credited[has_win], budgets)
            powered = PPIWins(wins, int(has_win.sum()) if wins else 0)
        return msgspec.structs.replace(
            summary, largest=largest, curve=curve, wins=powered.wins, num_wins=powered.num_wins
        )

    def write(self, result: Result, summary: BestOfNSummary, noted: dict[str, int]) -> tuple[BestOfNSummary, Counts]:
        """Write the responses chosen, the pairs and the next turns."""
        num_in, num_pairs, num_next = 0, 0, 0
        dropped = Counter[str]()
        wants_baseline = summary.baseline is not None
        with ExitStack() as stack:
            chosen_file = stack.enter_context(atomic_write(result.path("cases.jsonl")))
            pair_file = stack.enter_context(atomic_write(result.path("pairs.jsonl"))) if self.config.n != 1 else None
            turn_file = stack.enter_context(atomic_write(result.path("next_turn.jsonl"))) if self._has_turns else None
            for each, _ in self.candidates():
                num_in += 1
                selection = select(each, self.config.n, self.config.seed)
                if selection is None:
                    dropped[_FEWER if each.scores else _NO_CANDIDATE] += 1
                    continue
                if selection.margin > 0 and pair_file is not None:
                    pair_file.write(encode_case(training_pair(each.case, selection)))
                    num_pairs += 1
                if turn_file is not None and (turn := next_turn(each.case, selection.best)) is not None:
                    turn_file.write(encode_case(turn))
                    num_next += 1
                if wants_baseline and each.baseline is None:
                    dropped[_NO_BASELINE] += 1
                    continue
                responses = (selection.best,) if each.baseline is None else (selection.best, each.baseline)
                chosen = with_responses_only(each.case, responses)
                if each.baseline is None:
                    # The answer to imitate, for supervised fine-tuning: nothing stands beside it.
                    chosen = msgspec.structs.replace(chosen, ranking=((selection.best.id,),))
                chosen_file.write(encode_case(chosen))
            num_used = num_in - dropped.total()
            if not num_used:
                reasons = ", ".join(f"{name}: {number}" for name, number in dropped.items())
                raise EvidenceError(f"nothing is chosen for any prompt ({reasons})", where=str(self.files.cases))
        noted["prompts without a pair"] = num_in - dropped[_FEWER] - dropped[_NO_CANDIDATE] - num_pairs
        counts = Counts(
            num_in=num_in,
            num_used=num_used,
            dropped=dict(dropped),
            noted={name: number for name, number in noted.items() if number},
        )
        return msgspec.structs.replace(summary, num_pairs=num_pairs, num_next_turns=num_next), counts
