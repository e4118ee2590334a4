"""The runs of `inspect`: one item with all that is known of it, or a page of items. Nothing is written."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError
from steelyard.core.types import Case, Meta
from steelyard.networks.answer_tokens import ShownAnswer, shown_answers
from steelyard.plugins.reward_models import ModelChoice, choose_model
from steelyard.report.case_analysis import analyze_case
from steelyard.report.case_sources import Rule, Target, find_scores, is_folder_model, look_up
from steelyard.report.case_table import ItemList
from steelyard.report.item_page import ItemPage
from steelyard.stages.inspect.finding import Wanted, find_item, list_items

_PROTOCOL = ("template_hash", "special_tokens", "strip", "max_length", "over_length")


class Settings(BaseConfig, frozen=True):
    """``model`` are the settings of the model that is named."""

    model: Meta = msgspec.field(default_factory=dict)
    """Settings of the model's kind."""


class Beside(NamedTuple):
    """What to look at beside the case: files of scores, a model with its settings, whether to show its tokens.

    Null ``rule``: as the run took the judgments, or all of them.
    """

    scores: tuple[Path, ...] = ()
    model: str | None = None
    settings: Mapping[str, Any] | None = None
    with_tokens: bool = False
    rule: Rule | None = None


_NOTHING = Beside()
_ALL = Wanted()


class ShownTokens(NamedTuple):
    """The tokens of every answer, and remarks on the model that reads them."""

    model: str | None = None
    tokens: tuple[ShownAnswer, ...] = ()
    remarks: tuple[str, ...] = ()


def inspect_item(path: Path, item: str, beside: Beside = _NOTHING, *, language: str | None = None) -> ItemPage:
    """One item of a case file, or of what a finished run wrote or read.

    Raises EvidenceError for an id that is not there or stands in several languages, ConfigError for tokens of a model
    that has none, and what reading and rendering raise.
    """
    target = look_up(path)
    found = find_item((*target.listed, *target.others), item, language)
    rule = beside.rule or target.rule
    own = [find_scores(scores, found.case, target.items) for scores in target.scores]
    given = [find_scores(scores, found.case) for scores in beside.scores]
    shown = _tokens(target, beside, found.case)
    later = [str(file.path) for file in (*target.listed, *target.others) if file.path != found.file.path]
    looked_up = [
        f"item: case {found.position} of {found.file.path} ({found.file.role})",
        *([f"not looked at: {', '.join(later)}"] if later else []),
        *(sentence for _, sentence in (*own, *given)),
        *shown.remarks,
        *target.remarks,
    ]
    return ItemPage(
        analysis=analyze_case(found.case, only=rule.only, aggregate=rule.aggregate),
        looked_up=tuple(looked_up),
        rule=str(rule),
        scored=tuple(scored for scored, _ in (*own, *given) if scored is not None),
        model=shown.model,
        tokens=shown.tokens,
    )


def inspect_items(path: Path, wanted: Wanted = _ALL, *, rule: Rule | None = None) -> ItemList:
    """A page of the items of a case file or of a finished run, as `inspect_item` finds them."""
    target = look_up(path)
    listing = list_items(target.listed, wanted, rule or target.rule)
    looked_up = [f"items: {file.path} ({file.role})" for file in target.listed]
    if target.others:
        looked_up.append(f"not listed, but looked in for --id: {', '.join(str(file.path) for file in target.others)}")
    return ItemList(
        opened_by=f"steelyard inspect {shlex.quote(str(path))}",
        rows=listing.rows,
        num_items=listing.num_items,
        num_found=listing.num_found,
        first=(wanted.page - 1) * wanted.limit + 1,
        next_page=wanted.page + 1 if wanted.page * wanted.limit < listing.num_found else None,
        looked_up=(*looked_up, *target.remarks),
    )


def _tokens(target: Target, beside: Beside, case: Case) -> ShownTokens:
    """The tokens by the model that is named, or by the run's own where they are asked for."""
    named = None if beside.model is None else choose_model(beside.model, beside.settings)
    model = named or target.model
    if model is None:
        if beside.with_tokens:
            raise ConfigError("no model is known here, so there are no tokens", do="name one: --model FOLDER")
        return ShownTokens()
    if named is None and not beside.with_tokens:
        hint = (f"tokens: --tokens shows what the model {model.name} reads",) if is_folder_model(model) else ()
        return ShownTokens(remarks=hint)
    if not is_folder_model(model):
        raise ConfigError(
            f"what a model of kind {model.kind!r} reads cannot be shown", allowed="the folder of a trained model"
        )
    return _rendered(model, case, protocol=None if named else target.protocol)


def _rendered(model: ModelChoice, case: Case, *, protocol: Mapping[str, Any] | None) -> ShownTokens:
    from steelyard.plugins.models.classifier import Config, reading_of

    settings = model.settings | {key: str(path) for key, path in model.files.items()}
    config = resolve_config(Config, settings, where=f"model.{model.kind}")
    reading = reading_of(config)
    tokens = shown_answers(reading.tokenizer, reading.rendering, case)
    differing = _differing(protocol or {}, reading.protocol)
    changed = [f"the model has CHANGED since the run: {', '.join(differing)}"] if differing else []
    return ShownTokens(model.name, tokens, (f"tokens: those that the model in {model.files['path']} reads", *changed))


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> Sequence[str]:
    return [f"{key} was {before[key]}, is {now[key]}" for key in _PROTOCOL if key in before and before[key] != now[key]]
