"""Screening of one prompt: its language, its private data, its harm, and what is compared with other prompts.

This is the work that processes share: a function of the prompt alone. What depends on other prompts (duplicates,
balance) follows in the stage.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, choices
from steelyard.core.languages import language_part
from steelyard.core.types import Prompt, Record
from steelyard.prompts.balance import GroupShare
from steelyard.prompts.classification import CategoryMapping, Classification
from steelyard.prompts.harmful import HarmRules, find_harm, parse_harm_rules
from steelyard.prompts.languages import LIKELY, chinese_script, identify
from steelyard.prompts.near_duplicates import Fingerprint, conversation_text, fingerprint
from steelyard.prompts.private_data import RULES, PrivateDatum, find_private_data, mask_private_data

ScreeningAction = Literal["drop", "mask", "count", "off"]


class ScreeningConfig(BaseConfig, frozen=True):
    """Searches in a prompt, and the treatment of each find."""

    languages: Literal["missing", "all", "off"] = "missing"
    """Prompts whose language is identified: missing (those without one), all, off. With all, labels stay and
    differences are counted."""
    min_probability: float = LIKELY
    """The probability from which an identified language is taken; below it a language is unknown."""
    unknown_language: Literal["keep", "drop"] = "keep"
    """Treatment of a prompt whose language is neither given nor identified."""
    only_languages: tuple[str, ...] = ()
    """Codes of languages that stay. Default: all."""
    private_data: dict[str, ScreeningAction] = msgspec.field(default_factory=dict)
    """Treatment of private data: drop (the prompt), mask, count or off. Kinds and rules without a setting drop."""
    harmful: Literal["drop", "count", "off"] = "count"
    """Prompts that ask for harm: drop, count or off. The rules find them, and the chat where there is one."""
    language_bound: Literal["drop", "count", "off"] = "off"
    """Prompts that cannot be translated, as they depend on English: drop, count or off. They are about letters, words,
    grammar, or the notation of a program. Rules find them, and the chat where there is one."""


class LanguageBound(NamedTuple):
    """Properties of English that a prompt depends on, and an excerpt that shows each."""

    reason: str
    excerpt: str


LanguageBoundFinder = Callable[[str, str | None], LanguageBound | None]
"""Finds whether a text in a language, null where unknown, depends on English. Processes share it."""


class ScreenedPrompt(NamedTuple):
    """Facts about one prompt. ``language`` is its ``label``, or the identified language where it has none.

    ``identified`` and ``script`` are null where nothing was identified; ``private`` has the data of each turn. ``root``
    is the fingerprint of the first user turn, null where it is that of the conversation.
    """

    language: str | None
    label: str | None
    identified: str | None
    probability: float | None
    script: str | None
    private: tuple[tuple[PrivateDatum, ...], ...]
    harm: str | None
    harm_sentence: str | None
    language_bound: LanguageBound | None
    conversation: Fingerprint
    root: Fingerprint | None


class ScreeningRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A rule that a prompt broke: a line of ``manifest.jsonl``. ``excerpt`` shows no private data.

    ``figure`` is the number that was compared with ``limit``: a similarity, a probability, a count, or a share.
    """

    prompt: str
    language: str | None
    rule: str
    action: ScreeningAction
    figure: float | None
    limit: float | None
    excerpt: str


class BenchOverlap(Record, frozen=True, kw_only=True):
    """The prompts that overlap with one bench, or with the training prompts of one model.

    ``num_prompts`` counts the bench's own; null for a model, which has only hashes. ``num_equal`` of the overlapping
    prompts have an equal first turn.
    """

    name: str
    num_prompts: int | None
    num_overlapping: int
    num_equal: int


class PromptsSummary(Record, frozen=True, kw_only=True):
    """Finds, and the balance before and after. Numbers count prompts.

    ``labels`` counts how prompts have their language: labelled, identified, unknown, and differing from the label.
    ``scripts`` counts the Chinese prompts by script. ``findings`` counts the prompts by rule and action, ``drops``
    those that were dropped by their first rule. ``mapping`` is that of a user's taxonomy, ``classification`` that of a
    language model; null without one.
    """

    num_in: int
    num_kept: int
    labels: dict[str, int]
    scripts: dict[str, int]
    findings: dict[str, dict[str, int]]
    drops: dict[str, int]
    num_duplicate_groups: int
    largest_duplicate_group: int
    overlaps: tuple[BenchOverlap, ...]
    shares: tuple[GroupShare, ...]
    has_language_model: bool
    num_unparsed_replies: int
    mapping: CategoryMapping | None = None
    classification: Classification | None = None


def check_screening(config: ScreeningConfig) -> None:
    """Raise ConfigError for an unknown kind or rule of private data."""
    known = {name for rule in RULES for name in (rule.name, rule.kind)}
    for name in config.private_data:
        if name not in known:
            raise ConfigError(f"unknown private data {name!r}", where="private_data", allowed=choices(name, known))


def private_action(datum: PrivateDatum, actions: Mapping[str, ScreeningAction]) -> ScreeningAction:
    """Return what happens to a find: the action of its rule, or that of its kind, or to drop the prompt."""
    return actions.get(datum.rule, actions.get(datum.kind, "drop"))


def screen_prompts(
    config: ScreeningConfig, find_language_bound: LanguageBoundFinder, prompts: Sequence[Prompt]
) -> list[ScreenedPrompt]:
    """Screen a batch of prompts: the work of a worker."""
    return [_screened(prompt, config, find_language_bound) for prompt in prompts]


def without_private_data(prompt: Prompt, screened: ScreenedPrompt) -> str:
    """Return the text of the prompt with all private data masked, for any treatment of it."""
    turns = zip(prompt.messages, screened.private, strict=True)
    return "\n".join(mask_private_data(message.content, data) for message, data in turns)


def private_rows(prompt: Prompt, screened: ScreenedPrompt, config: ScreeningConfig) -> list[ScreeningRow]:
    """Return a row for each rule that found private data in the prompt; the figure is the number of its finds."""
    data = [datum for turn in screened.private for datum in turn]
    excerpt = without_private_data(prompt, screened)
    rows: list[ScreeningRow] = []
    for rule, number in Counter(datum.rule for datum in data).items():
        datum = next(datum for datum in data if datum.rule == rule)
        action = private_action(datum, config.private_data)
        rows.append(
            screening_row(prompt, screened, f"private_data: {rule}", action, figure=(number, 0), excerpt=excerpt)
        )
    return rows


_MOST_EXCERPT = 160


def screening_row(
    prompt: Prompt,
    screened: ScreenedPrompt,
    rule: str,
    action: ScreeningAction,
    *,
    figure: tuple[float | None, float | None],
    excerpt: str | None = None,
) -> ScreeningRow:
    """Return the row of a broken rule; ``figure`` has the figure and its limit."""
    shown = " ".join((without_private_data(prompt, screened) if excerpt is None else excerpt).split())
    return ScreeningRow(
        prompt=prompt.id,
        language=screened.language,
        rule=rule,
        action=action,
        figure=None if figure[0] is None else round(figure[0], 4),
        limit=figure[1],
        excerpt=shown if len(shown) <= _MOST_EXCERPT else f"{shown[: _MOST_EXCERPT - 1]}…",
    )


def _screened(prompt: Prompt, config: ScreeningConfig, find_language_bound: LanguageBoundFinder) -> ScreenedPrompt:
    turns = [message.content for message in prompt.messages]
    question = "\n".join(message.content for message in prompt.messages if message.role == "user") or "\n".join(turns)
    language_found = None
    if config.languages == "all" or (config.languages == "missing" and prompt.language is None):
        (language_found,) = identify([question], min_probability=config.min_probability)
    language = prompt.language or (language_found.language if language_found else None)
    harm = None if config.harmful == "off" else find_harm(question, language, _harm_rules())
    root = next((message.content for message in prompt.messages if message.role == "user"), "")
    conversation = conversation_text(prompt)
    return ScreenedPrompt(
        language=language,
        label=prompt.language,
        identified=language_found.language if language_found else None,
        probability=language_found.probability if language_found else None,
        script=chinese_script(question) if config.languages != "off" and language_part(language) == "zh" else None,
        private=tuple(
            tuple(datum for datum in find_private_data(turn) if private_action(datum, config.private_data) != "off")
            for turn in turns
        ),
        harm=harm.category if harm else None,
        harm_sentence=harm.sentence if harm else None,
        language_bound=None if config.language_bound == "off" else find_language_bound(question, language),
        conversation=fingerprint(conversation),
        root=None if root == conversation else fingerprint(root),
    )


@cache
def _harm_rules() -> HarmRules:
    return parse_harm_rules(files("steelyard").joinpath("data/harmful.toml").read_text("utf-8"))
