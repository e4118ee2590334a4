"""Prompts: how many stay, the rules they broke, overlap, categories by a model and by people, and the balance."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from steelyard.core.text import number_of
from steelyard.core.types import Run
from steelyard.evaluation.tables import (
    DASH,
    DECIMAL,
    PERCENT,
    Grouped,
    Panel,
    Sentence,
    Table,
    count,
    decimal,
    group_word,
    percent,
    spread,
    table,
    word,
)
from steelyard.judging.prompt_questions import PromptsPreview
from steelyard.prompts.balance import GroupShare
from steelyard.prompts.category_agreement import NONE_FITS, CategoryAgreement
from steelyard.prompts.classification import Classification
from steelyard.prompts.screening import PromptsSummary
from steelyard.report.bars import CountBar, ShareChange, before_after, count_bars
from steelyard.report.page import COLON, COMMA
from steelyard.report.run_records import last_part
from steelyard.statistics.intervals import Estimate
from steelyard.views.forecasts import model_lines
from steelyard.views.text import result_sentences
from steelyard.views.view import PageSources, StageRun, View, report_step

_MOST_ROWS = 15


def _sentences(run: StageRun[PromptsSummary]) -> Iterator[Sentence]:
    summary = run.summary
    values = {
        "run": run.name,
        "kept": count(summary.num_kept),
        "prompts": count(summary.num_in),
        "share": percent(summary.num_kept / max(summary.num_in, 1)),
        "groups": count(summary.num_duplicate_groups),
        "largest": count(summary.largest_duplicate_group),
    }
    yield Sentence("say_prepared_prompts" if summary.num_duplicate_groups else "say_prompts_no_duplicates", values)
    labels = COMMA.join(f"{word(f'label_{name}')} {count(number)}" for name, number in summary.labels.items())
    yield Sentence("say_prompt_languages", {"run": run.name, "labels": labels})
    if summary.scripts:
        scripts = COMMA.join(
            f"{word(f'script_{key.lower()}', key)} {count(number)}" for key, number in summary.scripts.items()
        )
        yield Sentence("say_prompt_scripts", {"run": run.name, "scripts": scripts})
    for overlap in summary.overlaps:
        numbers = {"number": count(overlap.num_overlapping), "equal": count(overlap.num_equal)}
        yield Sentence("say_overlap", {"name": overlap.name, **numbers})
    if summary.num_unparsed_replies:
        yield Sentence("say_unread_replies", {"number": count(summary.num_unparsed_replies)})
    if (mapping := summary.mapping) is not None:
        numbers = {"known": count(mapping.num_known), "unknown": count(mapping.num_unknown)}
        yield Sentence("say_prompt_mapping", {"run": run.name, **numbers})
    if summary.classification is not None:
        yield from _classification_sentences(run.name, summary.classification)


def _classification_sentences(run: str, classification: Classification) -> Iterator[Sentence]:
    values = {
        "run": run,
        "chat": classification.chat,
        "asked": count(classification.num_asked),
        "assigned": count(classification.num_assigned),
        "none": count(classification.num_none),
        "unparsed": count(classification.num_unparsed),
    }
    yield Sentence("say_prompt_classes", values)
    agreement = classification.agreement
    if agreement is not None and agreement.accuracy.value is not None:
        values = {
            "chat": classification.chat,
            "accuracy": percent(agreement.accuracy.value),
            "interval": spread(agreement.accuracy),
            "prompts": count(agreement.num_prompts),
            "kappa": decimal(agreement.kappa.value, 2),
        }
        yield Sentence("say_prompt_agreement", values)


def _panels(run: StageRun[PromptsSummary], sources: PageSources) -> Iterator[Panel]:
    summary = run.summary
    if summary.findings:
        yield _findings_panel(summary)
    if summary.overlaps:
        rows = [
            (
                last_part(overlap.name),
                count(overlap.num_prompts),
                count(overlap.num_overlapping),
                count(overlap.num_equal),
            )
            for overlap in summary.overlaps
        ]
        columns = ("compared_with", "prompts_there", "overlapping", "equal_first_turns")
        yield Panel(word("prompt_overlap"), None, (Grouped("", table(columns, rows)),), "note_prompt_overlap")
    if summary.classification is not None and summary.classification.agreement is not None:
        yield from _agreement_panels(summary.classification.agreement)
    for kind, title in (("category", "by_category"), ("language", "by_language")):
        shares = [share for share in summary.shares if share.kind == kind]
        if len(shares) > 1:
            is_balanced = any(share.wanted is not None for share in summary.shares)
            yield _balance_panel(title, shares) if is_balanced else _groups_panel(title, shares)


def _agreement_panels(agreement: CategoryAgreement) -> Iterator[Panel]:
    """Yield the agreement with people as a whole, that of each category, and the categories that are confused."""
    rows = [
        (word("first_tier_accuracy"), *PERCENT.cells(agreement.accuracy), count(agreement.accuracy.n)),
        (word("all_tiers_accuracy"), *PERCENT.cells(agreement.whole_path), count(agreement.whole_path.n)),
        (word("category_kappa"), *DECIMAL.cells(agreement.kappa), count(agreement.kappa.n)),
        (word("unparsed_replies"), count(agreement.num_unparsed), DASH, DASH),
        (word("unlabelled_prompts"), count(agreement.num_unlabelled), DASH, DASH),
    ]
    whole = table(("category_measure", "value", "interval", "n"), rows)
    yield Panel(word("category_agreement"), None, (Grouped("", whole),), "note_category_agreement")
    each = [
        (
            _category(row.category),
            *(count(row.num_people), count(row.num_model)),
            *(*PERCENT.cells(row.recall), *PERCENT.cells(row.precision)),
        )
        for row in agreement.categories
    ]
    columns = ("group", "by_people", "by_model", "category_recall", "interval", "category_precision", "interval")
    yield Panel(word("agreement_by_category"), None, (Grouped("", table(columns, each)),), "note_agreement_by_category")
    if agreement.confusions:
        confused = [(_category(row.people), _category(row.model), count(row.number)) for row in agreement.confusions]
        shown = table(("by_people", "by_model", "n"), confused[:_MOST_ROWS])
        yield Panel(word("category_confusions"), None, (Grouped("", shown),), "note_category_confusions")


def _category(name: str) -> str:
    return word("no_category_fits") if name == NONE_FITS else name


def _groups_panel(title: str, shares: Sequence[GroupShare]) -> Panel:
    total = sum(share.num_after for share in shares)
    bars = [CountBar(_group(share), share.num_after) for share in shares[:_MOST_ROWS]]
    rows = [(_group(share), count(share.num_after), percent(share.num_after / max(total, 1))) for share in shares]
    figure = count_bars(f"prompt_groups_{shares[0].kind}", bars, total=total)
    return Panel(word(title), figure, (Grouped("", table(("group", "n", "share"), rows)),), "note_prompt_groups")


def _balance_panel(title: str, shares: Sequence[GroupShare]) -> Panel:
    start, end = sum(share.num_before for share in shares), sum(share.num_after for share in shares)
    changes = [
        ShareChange(_group(share), _share(share.num_before, start), _share(share.num_after, end))
        for share in shares[:_MOST_ROWS]
    ]
    rows = [
        (
            _group(share),
            DASH if share.wanted is None else percent(share.wanted),
            *(count(share.num_before), percent(share.num_before / max(start, 1))),
            *(count(share.num_after), percent(share.num_after / max(end, 1))),
        )
        for share in shares
    ]
    columns = ("group", "wanted_share", "value_before", "share", "value_after", "share")
    figure = before_after(f"prompt_shares_{shares[0].kind}", changes, axis="share")
    return Panel(word(title), figure, (Grouped("", table(columns, rows)),), "note_prompt_shares")


def _group(share: GroupShare) -> str:
    return group_word(share.kind, share.name)


def _rule(name: str) -> str:
    """Return the name of a rule in words; what follows its colon is a kind of finding, or a file without its folder."""
    kind, colon, rest = name.partition(": ")
    title = word(f"finding_{kind.replace(' ', '_')}")
    if not colon:
        return title
    part = last_part(rest) if kind in {"overlap", "trained_on"} else word(f"found_{rest}", rest.replace("_", " "))
    return f"{title}{COLON}{part}"


def _findings_panel(summary: PromptsSummary) -> Panel:
    numbers = {rule: sum(actions.values()) for rule, actions in summary.findings.items()}
    largest = sorted(numbers, key=lambda rule: (-numbers[rule], rule))
    bars = [CountBar(_rule(rule), numbers[rule]) for rule in largest[:_MOST_ROWS]]
    rows = [
        (_rule(rule), *(count(summary.findings[rule].get(action, 0)) for action in ("drop", "mask", "count")))
        for rule in largest
    ]
    shown: Table = table(("rule", "action_drop", "action_mask", "action_count"), rows)
    key = "note_prompt_findings_model" if summary.has_language_model else "note_prompt_findings"
    return Panel(
        word("prompt_findings"), count_bars("prompt_findings", bars, total=summary.num_in), (Grouped("", shown),), key
    )


def _share(number: int, total: int) -> Estimate:
    return Estimate(number / total if total else None, None, None, total)


def _preview(preview: PromptsPreview, out: Path) -> Iterator[str]:
    """Yield how many prompts would stay, the findings with examples, and what questions to a model would cost."""
    summary = preview.summary
    yield f"{summary.num_kept:,} of {number_of(summary.num_in, 'prompt')} would stay; nothing was written"
    run = Run(stage="prompts", config={}, counts=preview.counts, summary=summary)
    # The first sentence says what stays, which is a plan here.
    yield from islice(result_sentences(run, Path()), 1, None)
    for rule, numbers in summary.findings.items():
        actions = ", ".join(f"{action} {number:,}" for action, number in numbers.items())
        yield f"{rule}: {sum(numbers.values()):,} ({actions})"
        for row in preview.examples.get(rule, ()):
            figure = "" if row.figure is None else f" [{row.figure:g}]"
            yield f"  {row.action} {row.prompt}{figure}: {row.excerpt}"
    for forecast in preview.forecasts:
        yield from model_lines(forecast)


VIEW = View(
    115,
    "prompts",
    PromptsSummary,
    "prepared_prompts",
    _sentences,
    _panels,
    unit="view_prompts_kept",
    next_step=report_step("shows what was found"),
    unrecorded=_preview,
)
