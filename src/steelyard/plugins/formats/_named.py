"""Data under names of the user's own choice, as annotation tools keep them: which are the prompt, which the answers."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.types import Case, Message, Response
from steelyard.plugins.formats._fields import answer_turns, count_other_keys, response_of, text_or_list, turns_of
from steelyard.plugins.formats._pairwise import answer_text

PROMPT_NAMES = ("prompt", "instruction", "question", "input", "query", "conversation", "messages", "text", "context")
"""Under which names the prompt is looked for, in this order."""
_ANSWER = re.compile(r"(response|completion|generation|reply|answer|output|text|candidate)[-_ ]?\w*|chosen|rejected")
_ITEM_TEXTS = ("body", "text", "content", "html", "title")


class Named(NamedTuple):
    """What stands under the names: ``others`` are neither the prompt nor an answer.

    ``item_key`` and ``text_key`` say where the answers are items of a list (``[{"id": …, "body": …}, …]``).
    """

    prompt_key: str
    messages: tuple[Message, ...]
    responses: tuple[Response, ...]
    others: Mapping[str, Any]
    item_key: str | None = None
    text_key: str | None = None


def named_of(data: Mapping[str, Any], place: Place, *, ranked: Collection[str] = (), has_items: bool = False) -> Named:
    """The prompt under the first of ``PROMPT_NAMES``; the answers in a list of items, or under names of their own.

    Names of answers are those that are ``ranked``, or begin as answers do (``response``, ``answer``, ``output``, …).
    Raises RecordError where there is no prompt or no answer, or where one is neither a text nor turns.
    """
    prompt_key = next((name for name in PROMPT_NAMES if name in data and name not in ranked), None)
    if prompt_key is None:
        raise RecordError("no prompt among the fields", where=place, allowed=", ".join(PROMPT_NAMES))
    messages = turns_of(data[prompt_key], place, prompt_key, role="user")
    lists = [name for name, value in data.items() if has_items and name != prompt_key and _is_items(value)]
    item_key = lists[0] if lists else None
    if item_key is not None:
        text_key = next(name for name in _ITEM_TEXTS if name in data[item_key][0])
        responses = _items(data[item_key], text_key, place._replace(path=item_key))
        others = {name: value for name, value in data.items() if name not in (prompt_key, item_key)}
        return Named(prompt_key, messages, responses, others, item_key, text_key)
    names = [name for name in data if name != prompt_key and (name in ranked or is_answer_name(name))]
    # A name like an answer's with something else under it (a number of tokens) is not one.
    answers = {name: data[name] for name in names if name in ranked or isinstance(data[name], str | list)}
    if not answers:
        raise RecordError("no answer among the fields", where=place, allowed="names such as response1, response2")
    responses = tuple(
        response_of(name, turns_of(value, place, name, role="assistant")) for name, value in answers.items()
    )
    others = {name: value for name, value in data.items() if name != prompt_key and name not in answers}
    return Named(prompt_key, messages, responses, others)


def is_answer_name(name: str) -> bool:
    """Whether a field of this name is an answer without being ranked."""
    return _ANSWER.fullmatch(name) is not None and name not in PROMPT_NAMES


def field_names(case: Case) -> dict[str, str]:
    """A name for each response's field: its id where that is an answer's name, else a free one."""
    names = {response.id: response.id for response in case.responses if is_answer_name(response.id)}
    for number, response in enumerate(case.responses, 1):
        if response.id not in names:
            free = (f"response{further}" for further in range(number, number + 2 * len(case.responses) + 1))
            names[response.id] = next(name for name in free if name not in names.values())
    return names


def form_facts(named: Named, data: Mapping[str, Any]) -> dict[str, Any]:
    """What ``data_of`` needs to write the same names again, for ``as_read``."""
    items = data.get(named.item_key or "", ())
    return {
        "prompt": named.prompt_key,
        "item_key": named.item_key,
        "text_key": named.text_key,
        "ids": [item["id"] for item in items if not isinstance(item["id"], str)],
        "fields": named.item_key is None,
        "lists": [key for key, value in data.items() if isinstance(value, list) and key != named.item_key],
        "others": dict(named.others) or None,
    }


def data_of(
    case: Case, form: Mapping[str, Any], lost: Counter[str], *, names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The prompt and the answers under the names of ``form``; without one, answers are items (or have ``names``)."""
    prompt_key, lists = form.get("prompt", "prompt"), form.get("lists", ())
    prompt = text_or_list(case.prompt.messages, "user", as_list=prompt_key in lists)
    if form.get("fields"):
        names = {response.id: response.id for response in case.responses}
    if names is None:
        answers: dict[str, Any] = {form.get("item_key", "items"): _written_items(case, form, lost)}
    else:
        answers = {
            name: text_or_list(answer_turns(response), "assistant", as_list=name in lists)
            for response in case.responses
            for name in [names[response.id]]
        }
    return {prompt_key: prompt, **answers, **form.get("others", {})}


def count_keys_of_turns(data: Mapping[str, Any], noted: Counter[str]) -> None:
    """Count what the turns among the values say beyond their role and content."""
    for value in data.values():
        if isinstance(value, list) and value and isinstance(value[0], dict) and "role" in value[0]:
            count_other_keys(value, ("role", "content"), noted)


def _written_items(case: Case, form: Mapping[str, Any], lost: Counter[str]) -> list[dict[str, Any]]:
    text_key, own = form.get("text_key", "body"), {str(name): name for name in form.get("ids", ())}
    items = []
    for response in case.responses:
        said = {"id": own.get(response.id, response.id), text_key: answer_text(response, lost)}
        clashing = len(said.keys() & (response.meta or {}).keys())
        if clashing:
            lost["response meta under the format's own names"] += clashing
        items.append({**(response.meta or {}), **said})
    return items


def _is_items(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and "id" in item and "role" not in item for item in value)
        and any(isinstance(value[0].get(name), str) for name in _ITEM_TEXTS)
    )


def _items(items: Sequence[Mapping[str, Any]], text_key: str, place: Place) -> tuple[Response, ...]:
    responses = []
    for index, item in enumerate(items):
        where = place._replace(path=f"{place.path}[{index}]")
        if not isinstance(item.get(text_key), str) or isinstance(item["id"], bool | float | list | dict | None):
            raise RecordError("an item without id and text", where=where, allowed=f'{{"id": …, "{text_key}": a text}}')
        meta = {key: value for key, value in item.items() if key not in ("id", text_key)}
        responses.append(Response(id=str(item["id"]), text=item[text_key], meta=meta or None))
    if len({response.id for response in responses}) < len(responses):
        raise RecordError("two items of one id", where=place, allowed="unique ids")
    return tuple(responses)
