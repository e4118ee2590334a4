"""Rows of one question and plain answers: reading pairs of them, and telling which cases fit."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message, Meta, Response
from steelyard.plugins.formats._fields import PromptIds, only_question, rest, text_field, with_prompt
from steelyard.plugins.formats._pairwise import PairRow, pair_case, pair_rows
from steelyard.plugins.formats._sides import OTHER_SHAPE


class Names(NamedTuple):
    """What a format calls the question, the better answer and the worse one."""

    prompt: str
    chosen: str
    rejected: str


class Plain(NamedTuple):
    """A case's question, and its answers' texts by their ids."""

    question: str
    texts: Mapping[str, str]


class PlainRow(NamedTuple):
    """The row of a pair, and the pair."""

    values: dict[str, Any]
    pair: PairRow


def plain_of(case: Case, lost: Counter[str]) -> Plain | None:
    """The texts of a case of one user turn and answers of one turn each; any other is counted, and null."""
    question = only_question(case.prompt.messages)
    texts = {response.id: answer_or_none(response) for response in case.responses}
    if question is None or None in texts.values():
        lost[OTHER_SHAPE] += 1
        return None
    return Plain(question, {name: text for name, text in texts.items() if text is not None})


def answer_or_none(response: Response) -> str | None:
    """The answer as one text; null where it has other turns."""
    if response.text is not None:
        return response.text
    turns = response.messages or ()
    return turns[0].content if len(turns) == 1 and turns[0].role == "assistant" else None


def plain_case(row: Row, names: Names, ids: PromptIds, noted: Counter[str], *, known: Iterable[str]) -> Case:
    """A case of two tiers from three texts; keys that are not ``known`` go into ``prompt.meta``."""
    question, *answers = (text_field(row, key) for key in names)
    prompt = with_prompt((Message(role="user", content=question),), id=ids.made(row), meta=rest(row, known))
    return pair_case(prompt, [(Message(role="assistant", content=text),) for text in answers], noted)


def plain_rows(case: Case, names: Names, lost: Counter[str], carries: Collection[str]) -> Iterator[PlainRow]:
    """A row a pair, of three texts; none for a case that is not plain, which is counted as a whole."""
    plain = plain_of(case, lost)
    if plain is None:
        return
    for pair in pair_rows(case, lost, carries):
        texts = (plain.question, plain.texts[pair.better.id], plain.texts[pair.worse.id])
        yield PlainRow(dict(zip(names, texts, strict=True)), pair)


def without_keys(meta: Meta | None, keys: Iterable[str]) -> Meta | None:
    """What else a ``meta`` says; null where that is nothing."""
    named = set(keys)
    return {key: value for key, value in (meta or {}).items() if key not in named} or None
