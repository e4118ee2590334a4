"""Clean the responses of a case: drop, mask or count by the rules, and remove the evidence about dropped responses.

What leaves is recorded: each broken rule is a line of the manifest, and judgments, ratings, ranks and pairs about
dropped responses are counted. What stays is unchanged, but for masked names and for the order in which judges saw
answers, one of them dropped now: it becomes unknown, because the positions of the others would be different ones.
"""

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Literal, NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError
from steelyard.core.text import prompt_text
from steelyard.core.types import Case, Judgment, Message, Ranking, Record, Response
from steelyard.responses.phrases import AnswerPhrases
from steelyard.responses.rules import Action, CleaningRule, Finding, Measures, chosen_rules, findings
from steelyard.responses.subject import Subject, task_of

FEWEST_RESPONSES = 2
FEW_LEFT = "prompts with fewer than 2 responses left"


class Config(BaseConfig, frozen=True):
    """Settings of cleaning. The table of rules is in the how-to; their names are keys of ``actions`` and ``limits``."""

    actions: dict[str, Action] = msgspec.field(default_factory=dict)
    """Action of a rule on a response: drop, mask (names_model alone), count (keep and count) or off."""
    limits: dict[str, float] = msgspec.field(default_factory=dict)
    """The limit of a rule's figure, for every kind of prompt."""
    languages: Literal["identify", "scripts"] = "identify"
    """Distinction of languages of one script (identify, needs the extra `multilingual`), or only scripts."""
    length_spread: float = 2.0
    """Distance beyond the quartiles of an unusual length: this multiple of their distance, of the logarithm."""
    fewest_lengths: Positive = 20
    """The number of responses that a category in a language needs for bounds of its own."""
    always_fine_from: Positive = 10
    """The number of characters from which a response is never too short."""
    always_fine_to: Positive = 3000
    """The number of characters up to which a response is never too long."""
    small_prompts: Literal["keep", "drop"] = "keep"
    """Treatment of a prompt with fewer than two responses left."""


def check_settings(config: Config) -> None:
    """Raise ConfigError for an unknown rule or an impossible setting."""
    chosen_rules(config.actions, config.limits)
    if not 0 < config.length_spread < inf:
        raise ConfigError(f"length_spread is {config.length_spread}", where="clean", allowed="a number above 0")
    if config.always_fine_from > config.always_fine_to:
        problem = f"always_fine_from is {config.always_fine_from}, always_fine_to {config.always_fine_to}"
        raise ConfigError(problem, where="clean", do="make the first the smaller one")


class ManifestRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A broken rule: a line of ``manifest.jsonl``.

    ``original`` is the response before its names were masked: nothing else keeps it. It is null where nothing was
    masked: in a response that was dropped, or one whose ratings have spans. ``response`` is null for a prompt.
    """

    prompt: str
    language: str | None
    response: str | None
    rule: str
    action: Action
    figure: float
    limit: float
    original: Response | None = None


class CleanedCase(NamedTuple):
    """The case that stays, null if it is dropped, its lines of the manifest, and what was counted."""

    case: Case | None
    rows: list[ManifestRow]
    dropped: Counter[str]
    noted: Counter[str]


def clean_case(
    case: Case, measures: Measures, rules: Sequence[CleaningRule], *, drop_prompts_with_few: bool = False
) -> CleanedCase:
    """Return the case with the responses that stay. ``dropped`` counts responses by the first rule they break.

    ``drop_prompts_with_few`` drops a case with fewer than two responses left, if rules dropped some of them; the rest
    is counted as dropped too.
    """
    task, prompt = task_of(case), prompt_text(case)
    rows: list[ManifestRow] = []
    dropped, noted = Counter[str](), Counter[str]()
    responses: list[Response] = []
    with_spans = {rating.response for rating in case.ratings if rating.spans}
    for response in case.responses:
        subject = Subject(response, prompt=prompt, language=case.prompt.language, task=task)
        broken = findings(subject, measures, rules)
        first_drop = next((finding for finding in broken if finding.rule.action == "drop"), None)
        has_spans = response.id in with_spans
        rows += _rows(case, response, broken, can_mask=first_drop is None and not has_spans)
        if first_drop is not None:
            dropped[first_drop.rule.name] += 1
            continue
        for finding in broken:
            noted[finding.rule.name] += 1
        is_masked = any(finding.rule.action == "mask" for finding in broken)
        if is_masked and has_spans:
            noted["names not masked: spans of ratings count characters"] += 1
            is_masked = False
        responses.append(_masked(response, measures.phrases) if is_masked else response)
    if len(responses) < FEWEST_RESPONSES and dropped and drop_prompts_with_few:
        dropped[FEW_LEFT] += len(responses)
        rows.append(_prompt_row(case, len(responses)))
        return CleanedCase(None, rows, +dropped, noted)
    cleaned = (
        without_responses(case, responses, noted)
        if dropped
        else msgspec.structs.replace(case, responses=tuple(responses))
    )
    if len(responses) < FEWEST_RESPONSES and dropped:
        noted[FEW_LEFT] += 1
    return CleanedCase(cleaned, rows, dropped, noted)


def without_responses(case: Case, responses: Sequence[Response], noted: Counter[str]) -> Case:
    """Return the case with only these responses, and without evidence about the others, which is counted."""
    ids = {response.id for response in responses}
    judgments = [each for each in case.judgments if each.left in ids and each.right in ids]
    ratings = tuple(rating for rating in case.ratings if rating.response in ids)
    pairs = (
        None if case.pairs is None else tuple(pair for pair in case.pairs if pair.better in ids and pair.worse in ids)
    )
    ranking, num_unranked = _ranking(case.ranking, ids)
    noted["judgments of dropped responses"] += len(case.judgments) - len(judgments)
    noted["ratings of dropped responses"] += len(case.ratings) - len(ratings)
    noted["pairs of dropped responses"] += len(case.pairs or ()) - len(pairs or ())
    noted["ranks of dropped responses"] += num_unranked
    shown = [_known_order(judgment, ids) for judgment in judgments]
    noted["orders shown with a dropped response"] += sum(
        1 for before, after in zip(judgments, shown, strict=True) if before is not after
    )
    for name in [name for name, number in noted.items() if not number]:
        del noted[name]
    return msgspec.structs.replace(
        case, responses=tuple(responses), judgments=tuple(shown), ratings=ratings, ranking=ranking, pairs=pairs
    )


def _known_order(judgment: Judgment, ids: set[str]) -> Judgment:
    if judgment.shown is None or ids.issuperset(judgment.shown):
        return judgment
    return msgspec.structs.replace(judgment, shown=None)


def _ranking(ranking: Ranking | None, ids: set[str]) -> tuple[Ranking | None, int]:
    if ranking is None:
        return None, 0
    tiers = tuple(tuple(name for name in tier if name in ids) for tier in ranking)
    left = tuple(tier for tier in tiers if tier)
    return left or None, sum(map(len, ranking)) - sum(map(len, left))


def _rows(case: Case, response: Response, broken: Sequence[Finding], *, can_mask: bool) -> list[ManifestRow]:
    rows: list[ManifestRow] = []
    for finding in broken:
        is_mask = finding.rule.action == "mask" and can_mask
        rows.append(
            ManifestRow(
                prompt=case.prompt.id,
                language=case.prompt.language,
                response=response.id,
                rule=finding.rule.name,
                action=finding.rule.action,
                figure=round(finding.figure, 4),
                limit=round(finding.limit, 4),
                original=response if is_mask else None,
            )
        )
    return rows


def _prompt_row(case: Case, num_left: int) -> ManifestRow:
    return ManifestRow(
        prompt=case.prompt.id,
        language=case.prompt.language,
        response=None,
        rule=FEW_LEFT,
        action="drop",
        figure=num_left,
        limit=FEWEST_RESPONSES,
    )


def _masked(response: Response, phrases: AnswerPhrases) -> Response:
    if response.text is not None:
        return msgspec.structs.replace(response, text=phrases.masked(response.text))
    messages = tuple(
        Message(role=turn.role, content=phrases.masked(turn.content) if turn.role == "assistant" else turn.content)
        for turn in response.messages or ()
    )
    return msgspec.structs.replace(response, messages=messages)
