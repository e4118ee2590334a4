"""The texts of a case that are translated together, and the case that their translations make.

A case is one item: the turns of its prompt, its reference, and the turns of all responses. The labels stay: a wrong
answer has to be as wrong in another language. Judgments and ratings are evidence about the original texts, so that a
translated case has none; its ranking and pairs are those of the original.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.core.types import Case, JsonObject, Message, Response

TRANSLATION = "translation"
"""The key in the meta of a translated case of where it comes from."""


class ItemText(NamedTuple):
    """One text of an item. ``name`` is unique in it: ``user 1``, ``reference``, ``answer 2``.

    ``place`` is where findings say that it is: ``prompt``, or ``response`` and its id.
    """

    name: str
    text: str
    place: str


def item_texts(case: Case, *, is_prompt_only: bool = False) -> tuple[ItemText, ...]:
    """Return the texts of a case in their order; without those of responses where only the prompt is translated."""
    texts = [
        ItemText(f"{turn.role} {number}", turn.content, "prompt") for number, turn in enumerate(case.prompt.messages, 1)
    ]
    if case.prompt.reference:
        texts.append(ItemText("reference", case.prompt.reference, "reference"))
    if is_prompt_only:
        return tuple(texts)
    for number, response in enumerate(case.responses, 1):
        place = f"response {response.id}"
        texts += [ItemText(name, text, place) for name, text in _named_turns(response, number)]
    return tuple(texts)


def is_of_subsets(case: Case, patterns: Iterable[str]) -> bool:
    """Return whether the case's subset is one of these names; ``*`` in a name stands for any text."""
    subset = case.prompt.subset
    return subset is not None and any(fnmatchcase(subset.casefold(), pattern.casefold()) for pattern in patterns)


def translated_case(case: Case, language: str, texts: Mapping[str, str], meta: JsonObject) -> Case:
    """Return the case in another language: the texts by name, and every other text as it is."""
    turns = [
        Message(role=turn.role, content=texts.get(f"{turn.role} {number}", turn.content))
        for number, turn in enumerate(case.prompt.messages, 1)
    ]
    prompt = replace(
        case.prompt,
        messages=tuple(turns),
        language=language,
        reference=texts.get("reference", case.prompt.reference),
    )
    responses = tuple(_translated(response, number, texts) for number, response in enumerate(case.responses, 1))
    others = {TRANSLATION: meta}
    return replace(case, prompt=prompt, responses=responses, judgments=(), ratings=(), meta={**case.meta, **others})


def _named_turns(response: Response, number: int) -> Sequence[tuple[str, str]]:
    if response.messages is None:
        return [(f"answer {number}", response.text or "")]
    return [
        (f"answer {number} {turn.role} {place}", turn.content) for place, turn in enumerate(response.messages, start=1)
    ]


def _translated(response: Response, number: int, texts: Mapping[str, str]) -> Response:
    translations = [texts.get(name, text) for name, text in _named_turns(response, number)]
    if response.messages is None:
        return replace(response, text=translations[0])
    turns = zip(response.messages, translations, strict=True)
    return replace(response, messages=tuple(Message(role=turn.role, content=text) for turn, text in turns))
