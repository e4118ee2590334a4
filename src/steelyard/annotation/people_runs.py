"""The summaries of the stages in which people work on a recipe's cases, and the refusals that they leave.

A refusal is a reason to leave a prompt out in all languages: an item that does not suit its language, a translation of
low quality, a prompt that people dropped.
"""

from collections.abc import Mapping

from steelyard.core.types import Case, Record

DROPPED = "dropped by people"
"""The reason of a prompt that people dropped, at its review or when nothing was left to compare."""
_SUITED, _QUALITY = "suited", "translation quality"


class AnnotateSummary(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A project whose people have finished: the kind of its tasks, and its items by state.

    ``num_cases`` are those of the file; the others got no task (not drawn, or with too few responses).
    """

    project: str
    kind: str
    is_simulated: bool
    num_cases: int
    states: dict[str, int]


class AnnotatedSummary(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The answers of a project that stand, as cases.

    ``evidence`` is ``aligned`` or ``both``, as in an export. ``refused`` counts prompts by the reason of their refusal;
    ``num_prompts_left`` are the prompts that stay, null where the stage reads no list of them.
    """

    project: str
    kind: str
    is_simulated: bool
    evidence: str
    num_cases: int
    num_judgments: int
    num_ratings: int
    num_people: int
    refused: dict[str, int]
    num_prompts_left: int | None


class ReleaseSummary(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A released bench: the prompts, responses, ordered pairs and judgments of each part, and its canary."""

    name: str
    version: str
    is_simulated: bool
    canary: str
    prompts: dict[str, int]
    responses: dict[str, int]
    ordered_pairs: dict[str, int]
    judgments: dict[str, int]


def is_simulated_run(summary: Mapping[str, object]) -> bool:
    """Tell whether the summary of a stage says that its people are simulated."""
    return summary.get("is_simulated") is True


def reviewed_prompt(case: Case) -> str:
    """Return the id of the prompt that a reviewed case decides on: of a translated text that of its item."""
    meta, name = case.prompt.meta or {}, case.prompt.id
    if isinstance(item := meta.get("item"), str):
        return item
    # Files for translators that an earlier version wrote have the item in the id alone: before the language.
    language = meta.get("answer_language")
    if isinstance(language, str) and [response.id for response in case.responses] == ["translation"]:
        item, separator, _ = name.rpartition(f" {language} ")
        return item if separator else name
    return name


def refusals_of(case: Case, *, least_quality: float) -> tuple[str, ...]:
    """Return the reasons for which people refuse a case: one person suffices where both first answers are exported.

    ``least_quality``: the lowest number of points, from 0 to 100, of a translation that stays.
    """
    entries = [(judgment.meta or {}).get("entries") or {} for judgment in case.judgments if judgment.kind == "human"]
    reasons = ["not suited to the language"] if any(each.get(_SUITED) == "no" for each in entries) else []
    points = [rating.value for rating in case.ratings if rating.kind == "human" and rating.dimension == _QUALITY]
    if any(value < least_quality for value in points):
        reasons.append("low translation quality")
    return tuple(reasons)
