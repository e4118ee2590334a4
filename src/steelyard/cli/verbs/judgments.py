"""Judgments: let LLMs judge, resolve conflicts into rankings, and filter verdicts."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.forecast_lines import forecast_lines, status_lines
from steelyard.cli.options import (
    BATCH_OPTIONS,
    CASES,
    MODEL_SETTINGS,
    ONLY,
    SERVER_SETTINGS,
    SettingOption,
    StageArgument,
    StageOption,
    complete_model,
    in_panel,
)
from steelyard.cli.output import (
    TerminalTable,
    card_lines,
    cost_lines,
    interval_text,
    judge_lines,
    next_line,
    percent_text,
)
from steelyard.cli.verb import StageVerb
from steelyard.cli.verbs.curation import DEBIAS, FILTER_STUDY
from steelyard.core.text import money_text, number_of, verb_for
from steelyard.core.types import Run

if TYPE_CHECKING:
    from steelyard.evaluation.supervisor import SupervisionSummary
    from steelyard.judging.asking import JudgingSummary
    from steelyard.judging.forecast import JudgeForecast
    from steelyard.judging.run_status import JudgeStatus
    from steelyard.ranking.conflicts import Conflicts, ConflictTables
    from steelyard.ranking.judge_reliability import PanelReliability
    from steelyard.stages.resolve import ResolveSummary

_MAX_CONFLICT_ROWS = 10
_MAX_ANSWER_ROWS, _MAX_JUDGES = 7, 5


def _judge_answer(run: "Run[JudgingSummary] | JudgeForecast | JudgeStatus", out: Path) -> Iterator[str]:
    if not isinstance(run, Run):
        yield from forecast_lines(run) if run.kind == "forecast" else status_lines(run.status, out)
        return
    from steelyard.judging.unreadable import UNREADABLE_FILE

    summary = run.summary
    judge = summary.judges[summary.judge]
    noun, unit = ("rating", "response") if summary.task == "ratings" else ("verdict", "pair")
    missing = number_of(judge.num_missing, unit)
    none = f"; {missing} {verb_for(judge.num_missing, 'has', 'have')} none" if judge.num_missing else ""
    yield f"{summary.judge} gave {number_of(judge.num_given, noun)}{none}: {out / 'cases.jsonl'}"
    lines = list(judge_lines(summary.judges))
    yield from lines[:_MAX_ANSWER_ROWS]
    if len(lines) > _MAX_ANSWER_ROWS:
        yield f"… {len(lines) - _MAX_ANSWER_ROWS} more lines: --verbose"
    if summary.card is not None:
        yield from card_lines(summary.card, is_whole=False)
    yield from cost_lines(summary.tokens)
    if summary.marked is not None:
        number, lost = summary.marked.num_responses, summary.marked.num_missing
        yield (
            f"{number_of(number, 'response')} {verb_for(number, 'holds', 'hold')} a verdict of the judge's form, which "
            f"counts as a quotation; {lost:,} of {summary.marked.num_judged:,} {missing} of these "
            f"{verb_for(lost, 'has', 'have')} no verdict"
        )
    if judge.num_missing:
        yield f"the replies without one, with the reason: {out / UNREADABLE_FILE}"
    yield next_line("resolve", out / "cases.jsonl", "--out", "resolved")


def _judge_details(run: "Run[JudgingSummary]", _: Path) -> Iterator[str]:
    if not isinstance(run, Run):
        return
    yield from judge_lines(run.summary.judges)
    if run.summary.card is not None:
        yield from card_lines(run.summary.card, is_whole=True)
    for name, used in run.summary.tokens.items():
        cost = "" if used.cost is None else f", cost {money_text(used.cost)}"
        odd = (
            f", without {number_of(used.odd_usage, 'reply', 'replies')} with impossible counts"
            if used.odd_usage
            else ""
        )
        yield f"{name}: {used.prompt:,} prompt tokens, {used.reply:,} reply tokens{cost}{odd}"
        for model, number in used.other_models.items():
            yield (
                f"{name}: {number:,} of {number_of(used.num_replies, 'reply', 'replies')} "
                f"{verb_for(number, 'is', 'are')} by a model named {model!r}"
            )


JUDGE = StageVerb(
    "judge",
    """Let a language model compare the responses of a case file.

    Every pair is shown in both orders; verdicts that disagree are a tie. Replies are stored as they come: an
    interrupted run resumes, and sends no request twice. OUT/cases.jsonl has the cases with the verdicts added.

    Example: `steelyard judge cases.jsonl --chat openai_compatible --base-url http://localhost:8000/v1
    --chat-model Qwen2.5-7B-Instruct --style qwen --out judged`

    `--dry-run` forecasts requests, tokens, money and hours, by the replies so far if there are any. The same
    command goes on after a limit or an interruption (docs/howto/judge.md). A panel is `--config panel.toml`
    with a [[members]] table for each judge. `--batch` is often at half the price (docs/howto/batch.md).
    """,
    (
        CASES,
        StageOption("out", "The folder for cases.jsonl and run.json."),
        SettingOption("chat.kind", "--chat", help="The kind of chat: see `steelyard list chats`."),
        *SERVER_SETTINGS,
        SettingOption("judge.style", config=("steelyard.plugins.judges.tasks", "PairwiseConfig")),
        SettingOption("task"),
        SettingOption("pairs"),
        SettingOption("num_pairs"),
        StageOption("scores", "With --pairs unsure: the score file that says which."),
        StageOption("calibrate", "People's labels: adds what the judge is worth."),
        SettingOption("repeats"),
        *in_panel(
            "Cost",
            StageOption("prices", "A TOML file of prices by model."),
            StageOption("max_cost", "Stop when the replies cost this much."),
            StageOption("max_failed", "Stop when more requests than this failed."),
            StageOption("max_hours", "Stop after so many hours."),
            StageOption("dry_run", "Forecast the cost; send and write nothing."),
            StageOption("tokenizer", "With --dry-run: a tokenizer's folder. Default: characters, by script."),
            StageOption("rate", "With --dry-run: requests a second."),
            StageOption("status", "Print how far the run in --out has come."),
        ),
        *in_panel("Batch files", *BATCH_OPTIONS),
        StageOption("allow_failed", "Finish although requests failed: no verdict."),
    ),
    _judge_answer,
    _judge_details,
)


def _resolve_answer(run: "Run[ResolveSummary]", out: Path) -> Iterator[str]:
    from steelyard.ranking.judgment_table import REPEATED

    conflicts, noted = run.summary.conflicts, run.counts.noted
    overall = conflicts.overall
    if overall.num_judgments:
        ratio, ordered = (
            "none" if share is None else f"{share:.1%}" for share in (overall.ratio, overall.share_of_pairs_ordered)
        )
        number = number_of(overall.num_judgments, "judgment")
        yield (
            f"{ratio} of {number} {verb_for(overall.num_judgments, 'is', 'are')} in conflict; the rankings order "
            f"{ordered} of the response pairs."
        )
        yield from _contradiction_lines(conflicts)
    else:
        yield "no judgment with a verdict counts here: there are no conflicts to measure, and no ranking was made"
    if num_kept := noted["given"]:
        yield (
            f"{number_of(num_kept, 'case')} {verb_for(num_kept, 'has', 'have')} no judgment that counts, and "
            f"{verb_for(num_kept, 'keeps', 'keep')} the ranking that {verb_for(num_kept, 'it', 'they')} came with"
        )
    if ties := noted.get("pairs tied by an even vote"):
        yield (
            f"{number_of(ties, 'pair')} of responses {verb_for(ties, 'has', 'have')} no verdict with the most "
            "votes: an even vote is a tie"
        )
    if repeated := noted.get(REPEATED):
        yield (
            f"{number_of(repeated, 'judgment')} {verb_for(repeated, 'repeats', 'repeat')} an identical judgment of the "
            "same judge: each counts once"
        )
    if run.summary.share_ordered_by_majority is not None:
        share = f"{run.summary.share_ordered_by_majority:.1%}"
        yield f"several judges compared the same pairs; --aggregate majority would order {share} of the response pairs"
    if overruled := noted.get("first answers beside aligned ones"):
        yield (
            f"{number_of(overruled, 'judgment')} {verb_for(overruled, 'is', 'are')} of first answers to tasks that "
            "people aligned or settled later, and undo it; to read only what stands: --only evidence=aligned"
        )
    if run.summary.reliability is not None:
        yield from _reliability_lines(run.summary.reliability)
    yield f"rankings: {out / 'cases.jsonl'}"
    yield next_line("report", out, "--out", "report.html", effect="shows the conflicts")


def _contradiction_lines(conflicts: "ConflictTables") -> Iterator[str]:
    """Yield the conflict ratio of each kind of judge, and of the judges that most contradict themselves."""
    if len(conflicts.by_kind) > 1:
        for kind, member in conflicts.by_kind.items():
            yield f"  {kind} alone: {_conflict_row(member)[0]} of {number_of(member.num_judgments, 'judgment')}"
    if len(conflicts.by_judge) < 2:
        return
    ratios = {name: member for name, member in conflicts.by_judge.items() if member.ratio}
    worst = sorted(ratios, key=lambda name: -(ratios[name].ratio or 0))
    for name in worst[:_MAX_JUDGES]:
        ratio, *_ = _conflict_row(ratios[name])
        yield f"  {name} contradicts itself: {ratio} of {number_of(ratios[name].num_judgments, 'judgment')}"
    if len(worst) > _MAX_JUDGES:
        yield f"  … {len(worst) - _MAX_JUDGES} more: --verbose"


def _resolve_details(run: "Run[ResolveSummary]", _: Path) -> Iterator[TerminalTable]:
    if run.summary.conflicts.overall.num_judgments:
        yield _conflict_table(run.summary.conflicts)


def _reliability_lines(panel: "PanelReliability") -> Iterator[str]:
    """Yield the judge that agrees least with the others if it stands out, with its change; or that none does."""
    tested = [judge for judge in panel.judges if judge.below_median is not None]
    if not tested:
        return
    lowest = next((judge for judge in tested if judge.stands_out), tested[0])
    agrees = (
        f"{lowest.judge} agrees with the others on {percent_text(lowest.agreement)} of "
        f"{number_of(lowest.num_pairs, 'pair')}"
    )
    if not lowest.stands_out or lowest.below_median is None:
        yield f"judges: none of {len(tested)} stands out; the lowest: {agrees}"
        return
    yield f"judges: {agrees}, {100 * (lowest.below_median.value or 0):.1f} points below their median"
    if (change := lowest.change) is not None:
        yield f"  {change.before.value:.1%} before {change.since}, {change.after.value:.1%} from then on"


def _conflict_table(conflicts: "ConflictTables") -> TerminalTable:
    rows: list[tuple[str, ...]] = [("all", *_conflict_row(conflicts.overall))]
    for group in ("kind", "judge", "category", "subset", "language"):
        members: dict[str, Conflicts] = getattr(conflicts, f"by_{group}")
        if not members:
            continue
        largest = sorted(members, key=lambda name: -members[name].num_judgments)[:_MAX_CONFLICT_ROWS]
        rows.append((f"by {group}",))
        rows += [(f"  {name}", *_conflict_row(members[name])) for name in largest]
        if len(members) > len(largest):
            rows.append((f"  … {len(members) - len(largest)} more",))
    heads = ("ratio", "of strict", "prompts with", "ordered", "judgments", "prompts")
    return TerminalTable("Conflicts", heads, rows)


def _conflict_row(conflicts: "Conflicts") -> tuple[str, ...]:
    shares = (conflicts.ratio, conflicts.ratio_of_strict, conflicts.share_of_prompts, conflicts.share_of_pairs_ordered)
    percentages = ("-" if share is None else f"{share:.1%}" for share in shares)
    return (*percentages, f"{conflicts.num_judgments:,}", f"{conflicts.num_prompts:,}")


RESOLVE = StageVerb(
    "resolve",
    """Turn judgments into conflict-free rankings, and report the conflicts.

    Responses that beat one another in a circle share a tier; a tier is what no remaining response beats. The judgments
    stay as they are: only `ranking` is new. A case without judgments keeps the ranking it has.

    The table says what share of the judgments, and of the strict ones, the rankings do not keep; in how many prompts
    that happens; and what share of all response pairs is ordered. Judges and kinds are measured on their own graphs.

    Example: `steelyard resolve cases.jsonl --out resolved --only kind=human --only kind=llm --aggregate majority`
    """,
    (
        CASES,
        StageOption("out", "The folder for cases.jsonl and run.json."),
        ONLY,
        SettingOption("aggregate"),
        StageOption("engine", "local, or ray: on a cluster (RAY_ADDRESS names one)."),
        StageOption("workers", "The number of processes. Default: one for each core, for large files."),
    ),
    _resolve_answer,
    _resolve_details,
)


def _supervise_lines(run: "Run[SupervisionSummary]", out: Path) -> Iterator[str]:
    summary, coverage = run.summary, run.summary.coverage
    counts = f"{summary.num_strict_kept:,} of {summary.num_strict:,} strict judgments kept"
    yield f"{counts} ({coverage.strict:.1%}), in {coverage.prompts:.1%} of the prompts."
    row = next((row for row in summary.by_threshold if row.threshold == summary.min_margin), None)
    if row and row.precision.n:
        share = row.precision
        value = f"{interval_text(share)} of {share.n:,}"
        yield f"precision at margin {row.threshold:.6g}: {value}, from {summary.precision_from}"
    if certificate := summary.calibration:
        yield f"certified: at least {certificate.precision} with confidence {certificate.confidence}"
    yield f"kept: {out / 'cases.jsonl'}; dropped judgments with their rules: {out / 'manifest.jsonl'}"


SUPERVISE = StageVerb(
    "supervise",
    """Let a reward model trained on human judgments filter those of an LLM (distant supervision).

    Policies: `agree` keeps a strict verdict if the model's margin for it is above 0 and at least `--min-margin`, and
    drops ties;
    `cycles` drops only what closes a cycle, the pairs with the smallest margin first; `weight` drops
    nothing and lists each pair with the model's belief in it as its weight.

    OUT/cases.jsonl has what is kept, ranked again; manifest.jsonl has each dropped judgment with its rule. A supervisor
    may not judge prompts that it was trained on.

    With --calibration-cases, the threshold is the smallest margin at which the kept verdicts are right as often as
    --min-precision asks. That file needs judgments by people and by the LLM on the same pairs.

    Example: `steelyard supervise llm.jsonl --model my-rm --out supervised --min-margin 0.5`

    Example: `steelyard supervise llm.jsonl --model my-rm --out calibrated --calibration-cases held_out.jsonl
    --min-precision 0.9`

    Example: `steelyard supervise llm.jsonl --scores scored/scores.jsonl --out acyclic --policy cycles`
    """,
    (
        StageArgument("cases", "The case file with the judgments to filter."),
        StageOption("out", "The folder for cases.jsonl and manifest.jsonl."),
        StageOption("model", "The supervisor: a model's folder, or a kind.", complete=complete_model),
        StageOption("scores", "The supervisor's scores, instead of --model."),
        SettingOption("policy"),
        SettingOption("min_margin"),
        SettingOption("keep_ties"),
        StageOption("calibration_cases", "Held-out cases judged by people, for the margin."),
        StageOption("calibration_scores", "The supervisor's scores of those cases, for --scores."),
        SettingOption("min_precision"),
        SettingOption("confidence"),
        StageOption("train_cases", "The supervisor's training cases: it judges none."),
        ONLY,
        *MODEL_SETTINGS,
    ),
    _supervise_lines,
)


VERBS = (JUDGE, RESOLVE, SUPERVISE, DEBIAS, FILTER_STUDY)
