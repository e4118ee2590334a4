"""Dialects of reward servers: the body of a question about some answers, and the numbers in its reply.

Every reader returns one list of numbers per item, in the order of the items, or raises Malformed. None picks a number
where there are several, and none changes one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from steelyard.core.types import JsonObject

Send = Literal["tokens", "text", "messages", "pair"]
Content = list[int] | str | list[dict[str, str]]


class Malformed(Exception):  # noqa: N818 - the reply is malformed, the program is not
    """A reply that is not of the dialect."""


class ServerItem(NamedTuple):
    """One answer as it is sent: whole (tokens, text or messages), and prompt and answer apart."""

    content: Content
    prompt: str
    answer: str


class ServedModel(NamedTuple):
    """The parts of a question besides the items: the model's name on the server, and how it pools."""

    model: str | None
    task: str | None
    adds_marks: bool


class Dialect(NamedTuple):
    """The protocol of a server.

    ``sends``: the forms that it takes. ``marks``: whether the server puts special tokens around a text (by request,
    always, or never). ``is_by_case``: the items of a question share a prompt. ``is_single``: a question has one item.
    """

    path: str
    sends: tuple[Send, ...]
    marks: Literal["asked", "always", "never"]
    question: Callable[[Sequence[ServerItem], ServedModel], JsonObject]
    read: Callable[[Any, int], list[list[float]]]
    is_by_case: bool = False
    is_single: bool = False


def _model_name(served: ServedModel) -> JsonObject:
    return {} if served.model is None else {"model": served.model}


def _vllm_question(items: Sequence[ServerItem], served: ServedModel) -> JsonObject:
    first = items[0].content
    is_conversation = isinstance(first, list) and bool(first) and isinstance(first[0], dict)
    content = {"messages": first} if is_conversation else {"input": [item.content for item in items]}
    task = {} if served.task is None else {"task": served.task}
    # The raw logit has two names, the present and the former one: a softmax over one label is always 1.
    raw = {"use_activation": False, "activation": False}
    return _model_name(served) | content | task | raw | {"add_special_tokens": served.adds_marks}


def _embedding_question(items: Sequence[ServerItem], served: ServedModel) -> JsonObject:
    return _model_name(served) | {"input": [item.content for item in items]}


def _sglang_question(items: Sequence[ServerItem], served: ServedModel) -> JsonObject:
    key = "text" if isinstance(items[0].content, str) else "input_ids"
    return {key: [item.content for item in items]}


def _tei_question(items: Sequence[ServerItem], served: ServedModel) -> JsonObject:
    # A list of two texts would be one pair: each text is wrapped, so that it is one of a batch.
    return {"inputs": [[item.content] for item in items], "raw_scores": True, "truncate": False}


def _rerank_question(items: Sequence[ServerItem], served: ServedModel) -> JsonObject:
    texts = [item.answer for item in items]
    return {"query": items[0].prompt, "texts": texts, "raw_scores": True, "truncate": False, "return_text": False}


def _openrlhf_question(items: Sequence[ServerItem], served: ServedModel) -> JsonObject:
    queries = [item.content for item in items]
    return {"query": queries, "prompts": [item.prompt for item in items], "labels": [""] * len(items)}


def _llamafactory_question(items: Sequence[ServerItem], served: ServedModel) -> JsonObject:
    return {"model": served.model or "reward", "messages": [item.content for item in items]}


def _slime_question(items: Sequence[ServerItem], served: ServedModel) -> JsonObject:
    return {"prompt": items[0].prompt, "response": items[0].answer, "label": None}


def _indexed(key: str) -> Callable[[Any, int], list[list[float]]]:
    """Return a reader of ``{"data": [{"index": …, KEY: numbers}, …]}``."""
    return lambda reply, num: [numbers(row.get(key)) for row in in_order(_field(reply, "data"), num)]


def _listed(key: str) -> Callable[[Any, int], list[list[float]]]:
    """Return a reader of ``{KEY: [number, …]}``."""

    def read(reply: Any, num: int) -> list[list[float]]:
        values = numbers(_field(reply, key))
        if len(values) != num:
            raise Malformed(f"{len(values)} {key}, not {num}")
        return [[value] for value in values]

    return read


def _read_sglang(reply: Any, num: int) -> list[list[float]]:
    rows = [reply] if num == 1 and isinstance(reply, dict) else reply
    if not isinstance(rows, list) or len(rows) != num:
        raise Malformed(f"not {num} results")
    return [numbers(_field(row, "embedding")) for row in rows]


def _read_labels(reply: Any, num: int) -> list[list[float]]:
    is_flat = num == 1 and isinstance(reply, list) and bool(reply) and isinstance(reply[0], dict)
    rows = [reply] if is_flat else reply
    if not isinstance(rows, list) or len(rows) != num or not all(isinstance(row, list) for row in rows):
        raise Malformed(f"not {num} results")
    # Labels come sorted by score: the order of their names does not depend on the scores.
    by_name = [sorted(row, key=lambda label: str(_field(label, "label"))) for row in rows]
    return [numbers([_field(label, "score") for label in row]) for row in by_name]


def _read_ranks(reply: Any, num: int) -> list[list[float]]:
    return [numbers([row.get("score")]) for row in in_order(reply, num)]


def _read_number(reply: Any, num: int) -> list[list[float]]:
    if num != 1:
        raise Malformed("one number for one item")
    return [numbers([reply])]


def in_order(rows: Any, num: int) -> list[JsonObject]:
    """Return the results by their ``index``: each of 0 to num - 1 exactly once, in any order."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Malformed("no list of results")
    by_index = {row["index"]: row for row in rows if type(row.get("index")) is int}
    if len(rows) != num or any(index not in by_index for index in range(num)):
        raise Malformed(f"not the results 0 to {num - 1}, each once")
    return [by_index[index] for index in range(num)]


def numbers(values: Any) -> list[float]:
    """Return finite numbers; a list of lists of one number each is read as those numbers."""
    if isinstance(values, list) and values and all(isinstance(value, list) and len(value) == 1 for value in values):
        values = [value[0] for value in values]
    if not isinstance(values, list) or not values:
        raise Malformed("no list of numbers")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise Malformed(f"{value!r} is not a finite number")
    return [float(value) for value in values]


def _field(value: Any, name: str) -> Any:
    if not isinstance(value, dict) or name not in value:
        raise Malformed(f"no {name!r}")
    return value[name]


_TOKENS_FIRST: tuple[Send, ...] = ("tokens", "text")
_VLLM: tuple[Send, ...] = (*_TOKENS_FIRST, "messages")
DIALECTS: Mapping[str, Dialect] = {
    "vllm_classify": Dialect("/classify", _VLLM, "asked", _vllm_question, _indexed("probs")),
    "vllm_pooling": Dialect("/pooling", _VLLM, "asked", _vllm_question, _indexed("data")),
    "sglang": Dialect("/classify", _TOKENS_FIRST, "always", _sglang_question, _read_sglang),
    "sglang_embeddings": Dialect("/v1/embeddings", _TOKENS_FIRST, "always", _embedding_question, _indexed("embedding")),
    "tei_predict": Dialect("/predict", ("text",), "always", _tei_question, _read_labels),
    "tei_rerank": Dialect("/rerank", ("pair",), "always", _rerank_question, _read_ranks, is_by_case=True),
    "openrlhf": Dialect("/get_reward", ("text",), "never", _openrlhf_question, _listed("rewards")),
    # src/llamafactory/api/protocol.py and chat/hf_engine.py of hiyouga/LLaMA-Factory: it adds no special tokens.
    "llamafactory": Dialect("/v1/score/evaluation", ("text",), "never", _llamafactory_question, _listed("scores")),
    # slime/rollout/rm_hub/__init__.py of THUDM/slime: its remote_rm sends this to any path; the reply is a number.
    "slime": Dialect("", ("pair",), "always", _slime_question, _read_number, is_single=True),
}
