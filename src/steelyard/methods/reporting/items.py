"""The items of the page: for every prompt a short line for the table, and the whole of it for the drill-down."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.types import Case, Judgment, Ranking, Response
from steelyard.methods.reporting.contents import Item
from steelyard.methods.reporting.graphs import Edge, graph_edges, num_conflicting

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


def join_items(cases: Mapping[str, Iterable[Case]], evaluations: Sequence[Iterable[Item]]) -> tuple[Known, ...]:
    """What is known of each prompt, by (prompt id, language), in order of first mention: evaluated ones first."""
    outcomes = [{(item.prompt, item.language): item for item in items} for items in evaluations]
    found: dict[Key, list[tuple[str, Case]]] = {key: [] for own in outcomes for key in own}
    for name, given in cases.items():
        for case in given:
            found.setdefault(case.key, []).append((name, case))
    return tuple(Known(key, tuple(own), tuple(one.get(key) for one in outcomes)) for key, own in found.items())


def edges_of(known: Known) -> tuple[Edge, ...]:
    """The judgments on the prompt as a graph; those that two files share are taken once."""
    return graph_edges(_judgments(known))


def index_line(known: Known, edges: Sequence[Edge]) -> list[Any]:
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


def detail(known: Known, edges: Sequence[Edge]) -> dict[str, Any]:
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


def is_of_interest(known: Known, edges: Sequence[Edge]) -> bool:
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
