"""What reward servers understand: for each dialect the question for some answers, and the numbers in its reply.

Every reader gives one list of numbers an item, in the order asked, or raises Malformed; none picks a number where
there are several, none changes one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

Send = Literal["tokens", "text", "messages", "pair"]
Content = list[int] | str | list[dict[str, str]]


class Malformed(Exception):  # noqa: N818 - it says what the reply is
    """A reply that is not of the dialect."""


class Item(NamedTuple):
    """One answer as it is sent: whole (tokens, text or messages), and prompt and answer apart."""

    content: Content
    prompt: str
    answer: str


class Asked(NamedTuple):
    """What a question needs besides the items: the served model's name, and how it is to pool."""

    model: str | None
    task: str | None
    adds_marks: bool


class Dialect(NamedTuple):
    """``sends``: what it can be sent. ``marks``: whether the server puts special tokens around a text: as it is
    asked, always, or never. ``is_by_case``: items of one prompt a question; ``is_single``: one item a question.
    """

    path: str
    sends: tuple[Send, ...]
    marks: Literal["asked", "always", "never"]
    question: Callable[[Sequence[Item], Asked], dict[str, Any]]
    read: Callable[[Any, int], list[list[float]]]
    is_by_case: bool = False
    is_single: bool = False


def _openai_question(items: Sequence[Item], asked: Asked) -> dict[str, Any]:
    first = items[0].content
    is_conversation = isinstance(first, list) and bool(first) and isinstance(first[0], dict)
    content = {"messages": first} if is_conversation else {"input": [item.content for item in items]}
    named = {} if asked.model is None else {"model": asked.model}
    task = {} if asked.task is None else {"task": asked.task}
    # The raw logit is asked for by its present and by its former name: a softmax over one label is always 1.
    raw = {"use_activation": False, "activation": False}
    return named | content | task | raw | {"add_special_tokens": asked.adds_marks}


def _embedding_question(items: Sequence[Item], asked: Asked) -> dict[str, Any]:
    named = {} if asked.model is None else {"model": asked.model}
    return named | {"input": [item.content for item in items]}


def _sglang_question(items: Sequence[Item], asked: Asked) -> dict[str, Any]:
    key = "text" if isinstance(items[0].content, str) else "input_ids"
    return {key: [item.content for item in items]}


def _tei_question(items: Sequence[Item], asked: Asked) -> dict[str, Any]:
    # A list of two texts would be one pair: each text is wrapped, so that it is one of a batch.
    return {"inputs": [[item.content] for item in items], "raw_scores": True, "truncate": False}


def _rerank_question(items: Sequence[Item], asked: Asked) -> dict[str, Any]:
    texts = [item.answer for item in items]
    return {"query": items[0].prompt, "texts": texts, "raw_scores": True, "truncate": False, "return_text": False}


def _openrlhf_question(items: Sequence[Item], asked: Asked) -> dict[str, Any]:
    queries = [item.content for item in items]
    return {"query": queries, "prompts": [item.prompt for item in items], "labels": [""] * len(items)}


def _llamafactory_question(items: Sequence[Item], asked: Asked) -> dict[str, Any]:
    return {"model": asked.model or "reward", "messages": [item.content for item in items]}


def _slime_question(items: Sequence[Item], asked: Asked) -> dict[str, Any]:
    return {"prompt": items[0].prompt, "response": items[0].answer, "label": None}


def _classified(reply: Any, num: int) -> list[list[float]]:
    return [numbers(row.get("probs")) for row in in_order(_field(reply, "data"), num)]


def _pooled(reply: Any, num: int) -> list[list[float]]:
    return [numbers(row.get("data")) for row in in_order(_field(reply, "data"), num)]


def _embedded(reply: Any, num: int) -> list[list[float]]:
    return [numbers(row.get("embedding")) for row in in_order(_field(reply, "data"), num)]


def _sglang(reply: Any, num: int) -> list[list[float]]:
    rows = [reply] if num == 1 and isinstance(reply, dict) else reply
    if not isinstance(rows, list) or len(rows) != num:
        raise Malformed(f"not {num} results")
    return [numbers(_field(row, "embedding")) for row in rows]


def _predicted(reply: Any, num: int) -> list[list[float]]:
    is_flat = num == 1 and isinstance(reply, list) and bool(reply) and isinstance(reply[0], dict)
    rows = [reply] if is_flat else reply
    if not isinstance(rows, list) or len(rows) != num or not all(isinstance(row, list) for row in rows):
        raise Malformed(f"not {num} results")
    # Labels come sorted by score: by name they have an order that no score moves.
    return [numbers([one["score"] for one in sorted(row, key=_label)]) for row in rows]


def _label(one: Any) -> str:
    label = _field(one, "label")
    _field(one, "score")
    return str(label)


def _reranked(reply: Any, num: int) -> list[list[float]]:
    return [numbers([row.get("score")]) for row in in_order(reply, num)]


def _rewarded(reply: Any, num: int) -> list[list[float]]:
    found = numbers(_field(reply, "rewards"))
    if len(found) != num:
        raise Malformed(f"{len(found)} rewards, not {num}")
    return [[one] for one in found]


def _scored(reply: Any, num: int) -> list[list[float]]:
    found = numbers(_field(reply, "scores"))
    if len(found) != num:
        raise Malformed(f"{len(found)} scores, not {num}")
    return [[one] for one in found]


def _number(reply: Any, num: int) -> list[list[float]]:
    if num != 1:
        raise Malformed("one number for one item")
    return [numbers([reply])]


def in_order(rows: Any, num: int) -> list[dict[str, Any]]:
    """The results by their ``index``: each of 0 to num - 1 exactly once, in whatever order they came."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Malformed("no list of results")
    by_index = {row["index"]: row for row in rows if type(row.get("index")) is int}
    if len(rows) != num or any(index not in by_index for index in range(num)):
        raise Malformed(f"not the results 0 to {num - 1}, each once")
    return [by_index[index] for index in range(num)]


def numbers(values: Any) -> list[float]:
    """Finite numbers; a list of lists of one number each is read as those numbers."""
    if isinstance(values, list) and values and all(isinstance(one, list) and len(one) == 1 for one in values):
        values = [one[0] for one in values]
    if not isinstance(values, list) or not values:
        raise Malformed("no list of numbers")
    for one in values:
        if isinstance(one, bool) or not isinstance(one, int | float) or not math.isfinite(one):
            raise Malformed(f"{one!r} is no finite number")
    return [float(one) for one in values]


def _field(value: Any, name: str) -> Any:
    if not isinstance(value, dict) or name not in value:
        raise Malformed(f"no {name!r}")
    return value[name]


_TOKENS_FIRST: tuple[Send, ...] = ("tokens", "text")
DIALECTS: Mapping[str, Dialect] = {
    "vllm_classify": Dialect("/classify", (*_TOKENS_FIRST, "messages"), "asked", _openai_question, _classified),
    "vllm_pooling": Dialect("/pooling", (*_TOKENS_FIRST, "messages"), "asked", _openai_question, _pooled),
    "sglang": Dialect("/classify", _TOKENS_FIRST, "always", _sglang_question, _sglang),
    "sglang_embeddings": Dialect("/v1/embeddings", _TOKENS_FIRST, "always", _embedding_question, _embedded),
    "tei_predict": Dialect("/predict", ("text",), "always", _tei_question, _predicted),
    "tei_rerank": Dialect("/rerank", ("pair",), "always", _rerank_question, _reranked, is_by_case=True),
    "openrlhf": Dialect("/get_reward", ("text",), "never", _openrlhf_question, _rewarded),
    # src/llamafactory/api/protocol.py and chat/hf_engine.py of hiyouga/LLaMA-Factory: it adds no special tokens.
    "llamafactory": Dialect("/v1/score/evaluation", ("text",), "never", _llamafactory_question, _scored),
    # slime/rollout/rm_hub/__init__.py of THUDM/slime: what its remote_rm asks, at whatever path; the reply is a number.
    "slime": Dialect("", ("pair",), "always", _slime_question, _number, is_single=True),
}
