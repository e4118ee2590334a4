"""The items of the page: a short line of each prompt for the table, and whole prompts within the page's budget."""

import base64
import gzip
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple, Protocol, overload, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt

from steelyard.core.text import answer_language, response_text
from steelyard.core.types import Case, JsonObject, Judgment, Ranking, Response
from steelyard.evaluation.failures import PromptErrors, item_pairs
from steelyard.evaluation.items import ScoredItem
from steelyard.report.case_analysis import PairEdge, graph_edges, num_conflicting
from steelyard.report.missing_verdicts import no_verdict_word
from steelyard.report.text_libraries import TextNeeds

Key = tuple[str, str | None]
_PREVIEW = 200
_ITEMS_PER_PAGE = 25
_LONGEST_EXAMPLE = 1500
"""The code points of a text of an example; the item has all of it."""


class JoinedItem(NamedTuple):
    """One prompt in all runs.

    ``cases`` has the prompt of each file that holds it, with the file's name; ``outcomes`` has a value for each
    evaluation, None where it lacks the prompt.
    """

    key: Key
    cases: tuple[tuple[str, Case], ...]
    outcomes: tuple[ScoredItem | None, ...]


@runtime_checkable
class KeyedFile(Protocol):
    """Values in a file, whose keys are in memory."""

    keys: Sequence[Key]


class ErrorMarks(NamedTuple):
    """The errors of each prompt by model.

    ``differing`` has two models for each pair of a prompt that only the first of them has right. ``leading`` are the
    positions of the prompts that the page shows first, which are packed before others.
    """

    errors: tuple[PromptErrors, ...] = ()
    differing: Mapping[int, Sequence[tuple[int, int]]] = {}
    leading: tuple[int, ...] = ()


class JoinedItems(Sequence[JoinedItem]):
    """The prompts of all runs by (prompt id, language), evaluated ones first; cases and items may be in files."""

    def __init__(self, cases: Mapping[str, Sequence[Case]], evaluations: Sequence[Sequence[ScoredItem]]) -> None:
        sources = (*evaluations, *cases.values())
        number_of: dict[Key, int] = {}
        numbers = [[number_of.setdefault(key, len(number_of)) for key in keys_of(source)] for source in sources]
        places = [_places(numbers_of, len(number_of)) for numbers_of in numbers]
        self._keys = tuple(number_of)
        self._evaluations = list(zip(evaluations, places, strict=False))
        self._cases = list(zip(cases, cases.values(), places[len(evaluations) :], strict=True))

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, index: int) -> JoinedItem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[JoinedItem]: ...
    def __getitem__(self, index: int | slice) -> JoinedItem | Sequence[JoinedItem]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        cases = tuple((name, values[place[index]]) for name, values, place in self._cases if place[index] >= 0)
        outcomes = tuple(self.outcome(index, number) for number in range(len(self._evaluations)))
        return JoinedItem(self._keys[index], cases, outcomes)

    def outcome(self, index: int, number: int) -> ScoredItem | None:
        """Return the item of a prompt in one of the evaluations; null if it lacks the prompt."""
        values, place = self._evaluations[number]
        return values[place[index]] if place[index] >= 0 else None


_UNMARKED = ErrorMarks()


def keys_of(values: Sequence[Case] | Sequence[ScoredItem]) -> Sequence[Key]:
    """Return the key of each value; those of a file are in memory."""
    return values.keys if isinstance(values, KeyedFile) else [value.key for value in values]


def cases_by_key(cases: Mapping[str, Sequence[Case]], wanted: Collection[Key]) -> dict[Key, Case]:
    """Return the cases with these keys, each from the file where it has most responses, of equals the first."""
    chosen_cases: dict[Key, Case] = {}
    for values in cases.values():
        for place, key in enumerate(keys_of(values)):
            if key not in wanted:
                continue
            case, before = values[place], chosen_cases.get(key)
            if before is None or len(case.responses) > len(before.responses):
                chosen_cases[key] = case
    return chosen_cases


def example_texts(case: Case, responses: Sequence[str]) -> tuple[str, list[str]]:
    """Return the last turn of the prompt and the texts of some responses, shortened; unknown ids have an empty text."""
    texts = {response.id: response_text(response) for response in case.responses}
    turns = [message.content for message in case.prompt.messages if message.role != "system"]
    return _shortened(turns[-1] if turns else ""), [_shortened(texts.get(name, "")) for name in responses]


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_EXAMPLE else text[:_LONGEST_EXAMPLE].rstrip() + " …"


def _places(numbers: Sequence[int], size: int) -> npt.NDArray[np.int64]:
    """Return the position of the value of each number, -1 for none."""
    places = np.full(size, -1)
    places[np.array(numbers, np.int64)] = np.arange(len(numbers))
    return places


def edges_of(known: JoinedItem) -> tuple[PairEdge, ...]:
    """Return the judgments on the prompt as a graph; those that two files share are taken once."""
    return graph_edges(_judgments(known))


def index_line(known: JoinedItem, edges: Sequence[PairEdge], at: int, marks: ErrorMarks = _UNMARKED) -> list[Any]:
    """Return a line of the table: id, language, category, preview, outcomes, responses, judgments, conflicting ones.

    The last value lists two models for each pair that only the first of them has right. An outcome is
    ``[pairs, correct, tied, exact, unscored, confidence, lengths]``, or null: the confidence of the worst error, and
    a bit for each comparison of lengths that a wrong pair has (`PromptErrors`). ``at`` is the position of the prompt.
    """
    case = known.cases[0][1] if known.cases else None
    item = next((outcome for outcome in known.outcomes if outcome is not None), None)
    category = case.prompt.category[0] if case and case.prompt.category else item.category if item else None
    messages = [message.content for message in case.prompt.messages if message.role != "system"] if case else []
    return [
        known.key[0],
        known.key[1],
        category,
        messages[-1][:_PREVIEW] if messages else "",
        [
            None if outcome is None else [*_outcome(outcome), *_worst(marks, number, at)]
            for number, outcome in enumerate(known.outcomes)
        ],
        len(case.responses) if case else len(item.scores) if item else 0,
        len(_judgments(known)),
        num_conflicting(edges),
        [list(models) for models in marks.differing.get(at, ())],
    ]


def detail(known: JoinedItem, edges: Sequence[PairEdge]) -> JsonObject:
    """Return one prompt with its responses, rankings and judgments, for the dialog that shows it."""
    prompt = known.cases[0][1].prompt if known.cases else None
    return {
        "id": known.key[0],
        "language": known.key[1],
        "answer_language": answer_language(prompt) if prompt else known.key[1],
        "category": list(prompt.category) if prompt else [],
        "source": prompt.source if prompt else None,
        "reference": prompt.reference if prompt else None,
        "messages": [[message.role, message.content] for message in prompt.messages] if prompt else [],
        "responses": _responses(known),
        "rankings": _rankings(known),
        "edges": [list(edge) for edge in edges],
        "wrong": [[] if outcome is None else _wrong_pairs(outcome) for outcome in known.outcomes],
        "ratings": [list(rating) for rating in _ratings(known)],
        "judgments": [
            [judgment.left, judgment.right, judgment.verdict, judgment.judge, judgment.kind, _shown_reason(judgment)]
            for judgment in _judgments(known)
        ],
    }


def _shown_reason(judgment: Judgment) -> str | None:
    is_missing = judgment.verdict == "none" and judgment.reason is not None
    return no_verdict_word(judgment.reason or "") if is_missing else judgment.reason


def is_of_interest(known: JoinedItem, edges: Sequence[PairEdge]) -> bool:
    """Return whether a model errs on the prompt, or its judgments conflict."""
    errs = any(outcome is not None and outcome.num_correct < outcome.num_pairs for outcome in known.outcomes)
    return errs or num_conflicting(edges) > 0


def is_simulated(case: Case) -> bool:
    """Return whether the case, or one of its judgments, is marked as simulated."""
    return bool(case.meta.get("simulated")) or any(
        (judgment.meta or {}).get("simulated") for judgment in case.judgments
    )


def _outcome(item: ScoredItem) -> list[Any]:
    num_unscored = sum(score is None for score in item.scores.values())
    return [item.num_pairs, item.num_correct, item.num_tied, item.exact_match, num_unscored]


def _worst(marks: ErrorMarks, number: int, at: int) -> list[Any]:
    if number >= len(marks.errors):
        return [None, 0]
    worst = float(marks.errors[number].worst[at])
    return [None if isnan(worst) else round(worst, 3), int(marks.errors[number].lengths[at])]


def _judgments(known: JoinedItem) -> tuple[Judgment, ...]:
    """Return the judgments of the file with the most: a later stage carries on those of the earlier ones."""
    return max((case.judgments for _, case in known.cases), key=len, default=())


def _wrong_pairs(item: ScoredItem) -> list[list[str]]:
    """Return the wrong pairs of the item, better response first."""
    return [[pair.better, pair.worse] for pair in item_pairs(item) if pair.margin is not None and pair.margin <= 0]


def _ratings(known: JoinedItem) -> list[tuple[str, str, str, str, float]]:
    """Return response, rater, kind, dimension and value of every rating; those that two files share are taken once."""
    return list(
        dict.fromkeys(
            (rating.response, rating.rater, rating.kind, rating.dimension, rating.value)
            for _, case in known.cases
            for rating in case.ratings
        )
    )


def _responses(known: JoinedItem) -> list[JsonObject]:
    texts: dict[str, Response] = {}
    for _, case in known.cases:
        for response in case.responses:
            texts.setdefault(response.id, response)
    ids = list(texts) + [name for outcome in known.outcomes if outcome for name in outcome.scores if name not in texts]
    return [
        {
            "id": name,
            "text": _text(texts[name]) if name in texts else None,
            "author": texts[name].author if name in texts else None,
            "scores": [None if outcome is None else outcome.scores.get(name) for outcome in known.outcomes],
        }
        for name in dict.fromkeys(ids)
    ]


def _text(response: Response) -> str:
    if response.text is not None:
        return response.text
    return "\n\n".join(f"{message.role}: {message.content}" for message in response.messages or ())


def _rankings(known: JoinedItem) -> list[JsonObject]:
    """Return the different rankings of the prompt, each with the names of the files that have it."""
    names_of: dict[Ranking, list[str]] = {}
    for name, case in known.cases:
        if case.ranking is not None:
            names_of.setdefault(case.ranking, []).append(name)
    if not names_of:
        for outcome in known.outcomes:
            if outcome is not None and outcome.ranking:
                names_of.setdefault(outcome.ranking, []).append("evaluate")
    return [
        {"names": list(dict.fromkeys(names)), "tiers": [list(tier) for tier in tiers]}
        for tiers, names in names_of.items()
    ]


class Packed(NamedTuple):
    """``lines`` has a line an item, encoded, which ends in its place ``[page, position]`` or null.

    ``pages`` are packed; ``num_whole`` items have a place. ``needs`` is what their texts need to be shown.
    ``scales`` has the range of each evaluation's scores without the outer hundredths, null where it has no score.
    ``languages`` are the codes of the items.
    """

    lines: list[bytes]
    pages: list[str]
    num_whole: int
    needs: TextNeeds = TextNeeds()
    scales: tuple[tuple[float, float] | None, ...] = ()
    languages: tuple[str, ...] = ()


def pack(items: Sequence[JoinedItem], *, budget: int, marks: ErrorMarks = _UNMARKED) -> Packed:
    """Return a line of every item, and whole ones up to ``budget`` bytes of the page.

    The leading items of ``marks`` are first, then errors and conflicts.
    """
    lines: list[bytes] = []
    first: list[int] = []
    others: list[int] = []
    scores: defaultdict[int, array[float]] = defaultdict(lambda: array("d"))
    languages: set[str] = set()
    for at, known in enumerate(items):
        edges = edges_of(known)
        languages.update(filter(None, (known.key[1],)))
        for number, outcome in enumerate(known.outcomes):
            scores[number].extend(score for score in (outcome.scores.values() if outcome else ()) if score is not None)
        lines.append(msgspec.json.encode(index_line(known, edges, at, marks)))
        (first if is_of_interest(known, edges) else others).append(at)
    order = list(dict.fromkeys([*marks.leading, *first, *others]))
    places: dict[int, tuple[int, int]] = {}
    pages: list[str] = []
    needs = TextNeeds()
    spent = 0
    for start in range(0, len(order), _ITEMS_PER_PAGE):
        chosen = order[start : start + _ITEMS_PER_PAGE]
        details = [detail(known, edges_of(known)) for known in map(items.__getitem__, chosen)]
        page = packed_text(details)
        spent += len(page)
        if spent > budget:
            break
        needs = needs.of(text for item in details for text in _texts(item))
        places |= {at: (len(pages), position) for position, at in enumerate(chosen)}
        pages.append(page)
    placed = [line[:-1] + b"," + msgspec.json.encode(places.get(at)) + b"]" for at, line in enumerate(lines)]
    scales = tuple(_scale(scores[number]) for number in sorted(scores))
    return Packed(placed, pages, len(places), needs, scales, tuple(sorted(languages)))


def _scale(scores: Sequence[float]) -> tuple[float, float] | None:
    """Return the range of the scores from the first to the last hundredth."""
    if not scores:
        return None
    low, high = np.quantile(np.asarray(scores, np.float64), (0.01, 0.99), method="inverted_cdf")
    return float(low), float(high)


def _texts(item: JsonObject) -> Iterator[str]:
    """Yield the texts of an item that a page renders."""
    yield from (content for _, content in item["messages"])
    yield from (response["text"] for response in item["responses"] if response["text"])
    if item["reference"]:
        yield item["reference"]


def packed_text(value: Any) -> str:
    """Return a value as JSON, compressed, in Base64: small, and nothing in it can end a script element."""
    return base64.b64encode(gzip.compress(msgspec.json.encode(value), 6, mtime=0)).decode()
