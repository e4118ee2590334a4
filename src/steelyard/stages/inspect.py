"""The verb `inspect`: one item of a case file or a run with its scores and tokens, or a page of items.

Nothing is written.
"""

from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.remedies import FOLDER, Advice, Command, Remedy
from steelyard.core.types import Case, JsonObject, Meta
from steelyard.networks.answer_tokens import ShownAnswer, shown_answers
from steelyard.plugins.reward_models import FOLDER_KIND, ModelChoice, choose_model
from steelyard.report.case_analysis import analyze_case
from steelyard.report.case_scores import find_scores
from steelyard.report.case_sources import Rule, Target, look_up
from steelyard.report.item_list import ItemFilter, ItemList, find_item, list_items
from steelyard.report.item_page import ItemPage
from steelyard.report.worst_pairs import WorstPairs, find_worst_pairs

_PROTOCOL = ("template_hash", "special_tokens", "strip", "max_length", "over_length")


class Config(BaseConfig, frozen=True):
    """Settings of an inspection."""

    model: Meta = msgspec.field(default_factory=dict)
    """Settings of the model's kind: docs/settings.md, under models."""


class InspectOptions(NamedTuple):
    """Additions to a shown case: files of scores, a model with its settings, its tokens.

    Null ``rule``: the judgments that the run used, or all of them.
    """

    scores: tuple[Path, ...] = ()
    model: str | None = None
    settings: JsonObject | None = None
    with_tokens: bool = False
    rule: Rule | None = None


_DEFAULT = InspectOptions()
_ALL = ItemFilter()


class ShownTokens(NamedTuple):
    """The tokens of every answer as the model reads them, and remarks."""

    model: str | None = None
    tokens: tuple[ShownAnswer, ...] = ()
    remarks: tuple[str, ...] = ()


def inspect_item(path: Path, item: str, options: InspectOptions = _DEFAULT, *, language: str | None = None) -> ItemPage:
    """Return one item of a case file, or of the files that a finished run wrote or read.

    Raises EvidenceError for an unknown id, and for one in several languages without ``language``; ConfigError for
    tokens of a model that has none.
    """
    target = look_up(path)
    files = (*target.listed, *target.others)
    found_item = find_item(files, item, language)
    case, file = found_item.case, found_item.file
    rule = options.rule or target.rule
    scores = [find_scores(scores, case, target.items) for scores in target.scores]
    scores += [find_scores(scores, case) for scores in options.scores]
    shown = _tokens(target, options, case)
    later = [str(other.path) for other in files if other.path != file.path]
    looked_up = [
        f"item: case {found_item.position} of {file.path} ({file.role})",
        *([f"not looked at: {', '.join(later)}"] if later else []),
        *(sentence for _, sentence in scores),
        *shown.remarks,
        *target.remarks,
    ]
    return ItemPage(
        analysis=analyze_case(case, only=rule.only, aggregate=rule.aggregate),
        looked_up=tuple(looked_up),
        rule=str(rule),
        scored=tuple(scored for scored, _ in scores if scored is not None),
        model=shown.model,
        tokens=shown.tokens,
    )


def inspect_items(path: Path, item_filter: ItemFilter = _ALL, *, rule: Rule | None = None) -> ItemList:
    """Return a page of the items of a case file or of a finished run."""
    target = look_up(path)
    looked_up = [f"items: {file.path} ({file.role})" for file in target.listed]
    if target.others:
        looked_up.append(f"not listed, but looked in for the id: {', '.join(str(file.path) for file in target.others)}")
    return list_items(
        target.listed,
        item_filter,
        rule or target.rule,
        opened_by=Command("inspect", (str(path),)),
        looked_up=(*looked_up, *target.remarks),
    )


def inspect_worst(path: Path, number: int) -> WorstPairs:
    """Return the most confident errors of a finished evaluation, one of each prompt."""
    return find_worst_pairs(look_up(path), number, opened_by=Command("inspect", (str(path),)))


def _tokens(target: Target, options: InspectOptions, case: Case) -> ShownTokens:
    """Return the tokens of the model in the options, or of the run's model with ``with_tokens``."""
    chosen = None if options.model is None else choose_model(options.model, options.settings)
    model = chosen or target.model
    if model is None:
        if options.with_tokens:
            raise ConfigError(
                "no model is known here, so there are no tokens", do=Advice("name one: ", Remedy("model", FOLDER))
            )
        return ShownTokens()
    if chosen is None and not options.with_tokens:
        hint = (
            (Advice(Remedy("tokens", value=True), f" shows what the model {model.name} reads"),)
            if model.kind == FOLDER_KIND
            else ()
        )
        return ShownTokens(remarks=hint)
    if model.kind != FOLDER_KIND:
        raise ConfigError(
            f"what a model of kind {model.kind!r} reads cannot be shown", allowed="the folder of a trained model"
        )
    return _rendered(model, case, protocol=None if chosen else target.protocol)


def _rendered(model: ModelChoice, case: Case, *, protocol: JsonObject | None) -> ShownTokens:
    from steelyard.plugins.models.classifier import Config, reading_of

    settings = model.settings | {key: str(path) for key, path in model.files.items()}
    config = resolve_config(Config, settings, where=f"model.{model.kind}")
    reading = reading_of(config)
    tokens = shown_answers(reading.tokenizer, reading.rendering, case)
    before, now = protocol or {}, reading.protocol
    differing = [
        f"{key} was {before[key]}, is {now[key]}" for key in _PROTOCOL if key in before and before[key] != now[key]
    ]
    changed = [f"the model has CHANGED since the run: {', '.join(differing)}"] if differing else []
    return ShownTokens(model.name, tokens, (f"tokens: those that the model in {model.files['path']} reads", *changed))
