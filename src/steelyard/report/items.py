"""The items of the page: for every prompt a short line for the table, and the whole of it for the drill-down."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, overload, runtime_checkable

import numpy as np
import numpy.typing as npt

from steelyard.core.types import Case, Judgment, Ranking, Response
from steelyard.report.case_analysis import PairEdge, graph_edges, num_conflicting
from steelyard.report.summary_readers import Item

Key = tuple[str, str | None]
PREVIEW = 200


class Known(NamedTuple):
    """All that the runs say of one prompt.

    ``cases`` are the same prompt as different files have it, with the name of each; ``outcomes`` has one place for
    each evaluation, None where it does not have the prompt.
    """

    key: Key
    cases: tuple[tuple[str, Case], ...]
    outcomes: tuple[Item | None, ...]


@runtime_checkable
class Keyed(Protocol):
    """Values that are not in memory, but whose keys are."""

    keys: Sequence[Key]


class JoinedItems(Sequence[Known]):
    """What is known of each prompt, put together when it is wanted: cases and items may be in files."""

    def __init__(self, cases: Mapping[str, Sequence[Case]], evaluations: Sequence[Sequence[Item]]) -> None:
        sources = (*evaluations, *cases.values())
        number_of: dict[Key, int] = {}
        numbers = [[number_of.setdefault(key, len(number_of)) for key in _keys(own)] for own in sources]
        places = [_places(own, len(number_of)) for own in numbers]
        self._keys = tuple(number_of)
        self._evaluations = list(zip(evaluations, places, strict=False))
        self._cases = list(zip(cases, cases.values(), places[len(evaluations) :], strict=True))

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, index: int) -> Known: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Known]: ...
    def __getitem__(self, index: int | slice) -> Known | Sequence[Known]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        cases = tuple((name, own[place[index]]) for name, own, place in self._cases if place[index] >= 0)
        outcomes = tuple(own[place[index]] if place[index] >= 0 else None for own, place in self._evaluations)
        return Known(self._keys[index], cases, outcomes)


def join_items(cases: Mapping[str, Sequence[Case]], evaluations: Sequence[Sequence[Item]]) -> JoinedItems:
    """What is known of each prompt, by (prompt id, language), in order of first mention: evaluated ones first."""
    return JoinedItems(cases, evaluations)


def _keys(values: Sequence[Case] | Sequence[Item]) -> Sequence[Key]:
    return values.keys if isinstance(values, Keyed) else [value.key for value in values]


def _places(numbers: Sequence[int], size: int) -> npt.NDArray[np.int64]:
    """The position of the value of each number, -1 for none."""
    places = np.full(size, -1)
    places[np.array(numbers, np.int64)] = np.arange(len(numbers))
    return places


def edges_of(known: Known) -> tuple[PairEdge, ...]:
    """The judgments on the prompt as a graph; those that two files share are taken once."""
    return graph_edges(_judgments(known))


def index_line(known: Known, edges: Sequence[PairEdge]) -> list[Any]:
    """A line of the table: id, language, category, preview, outcomes, responses, judgments and conflicting ones.

    An outcome is ``[pairs, correct, tied, exact, unscored]``, or null.
    """
    case = known.cases[0][1] if known.cases else None
    item = next((one for one in known.outcomes if one is not None), None)
    category = case.prompt.category[0] if case and case.prompt.category else item.category if item else None
    asked = [message.content for message in case.prompt.messages if message.role != "system"] if case else []
    return [
        known.key[0],
        known.key[1],
        category,
        asked[-1][:PREVIEW] if asked else "",
        [None if one is None else _outcome(one) for one in known.outcomes],
        len(case.responses) if case else len(item.scores) if item else 0,
        len(_judgments(known)),
        num_conflicting(edges),
    ]


def detail(known: Known, edges: Sequence[PairEdge]) -> dict[str, Any]:
    """Everything of one prompt for the drill-down, with short keys left out where there is nothing."""
    prompt = known.cases[0][1].prompt if known.cases else None
    return {
        "id": known.key[0],
        "language": known.key[1],
        "category": list(prompt.category) if prompt else [],
        "source": prompt.source if prompt else None,
        "reference": prompt.reference if prompt else None,
        "messages": [[message.role, message.content] for message in prompt.messages] if prompt else [],
        "responses": _responses(known),
        "rankings": _rankings(known),
        "edges": [list(edge) for edge in edges],
        "judgments": [[one.left, one.right, one.verdict, one.judge, one.kind, one.reason] for one in _judgments(known)],
    }


def is_of_interest(known: Known, edges: Sequence[PairEdge]) -> bool:
    """Whether a person will want to open it: a model errs on it, or its judgments conflict."""
    errs = any(one is not None and one.num_correct < one.num_pairs for one in known.outcomes)
    return errs or num_conflicting(edges) > 0


def is_simulated(case: Case) -> bool:
    """Whether the case says that it, or one of its judgments, is simulated."""
    return bool(case.meta.get("simulated")) or any((one.meta or {}).get("simulated") for one in case.judgments)


def _outcome(item: Item) -> list[Any]:
    num_unscored = sum(score is None for score in item.scores.values())
    return [item.num_pairs, item.num_correct, item.num_tied, item.exact_match, num_unscored]


def _judgments(known: Known) -> tuple[Judgment, ...]:
    """Of several files the one with the most judgments: a later stage carries on those of the earlier ones."""
    return max((case.judgments for _, case in known.cases), key=len, default=())


def _responses(known: Known) -> list[dict[str, Any]]:
    texts: dict[str, Response] = {}
    for _, case in known.cases:
        for response in case.responses:
            texts.setdefault(response.id, response)
    ids = list(texts) + [name for one in known.outcomes if one for name in one.scores if name not in texts]
    return [
        {
            "id": name,
            "text": _text(texts[name]) if name in texts else None,
            "author": texts[name].author if name in texts else None,
            "scores": [None if one is None else one.scores.get(name) for one in known.outcomes],
        }
        for name in dict.fromkeys(ids)
    ]


def _text(response: Response) -> str:
    if response.text is not None:
        return response.text
    return "\n\n".join(f"{message.role}: {message.content}" for message in response.messages or ())


def _rankings(known: Known) -> list[dict[str, Any]]:
    """The different rankings of the prompt, each with the names of all that say so."""
    said: dict[Ranking, list[str]] = {}
    for name, case in known.cases:
        if case.ranking is not None:
            said.setdefault(case.ranking, []).append(name)
    if not said:
        for one in known.outcomes:
            if one is not None and one.ranking:
                said.setdefault(one.ranking, []).append("evaluate")
    return [
        {"names": list(dict.fromkeys(names)), "tiers": [list(tier) for tier in tiers]} for tiers, names in said.items()
    ]
