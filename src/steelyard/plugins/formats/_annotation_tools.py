"""Annotation tools: the prompt and the answers among fields with names of the user's choice, and rankings as judgments.

`ToolFormat` is a tool whose record holds both.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from string import ascii_uppercase
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Kind, Message, Rating, Response, Verdict
from steelyard.curation.format_support import count_lost
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
    other_meta,
    with_each,
)
from steelyard.plugins.formats._turns import (
    answer_text,
    answer_turns,
    count_other_keys,
    response_of,
    text_or_list,
    turns_of,
)

Evidence = TypeVar("Evidence")


class RankingSource(NamedTuple):
    """The judge and the question that the judgments of one ranking share."""

    judge: str
    kind: Kind
    task: str | None = None


class ToolEvidence(NamedTuple):
    """The judgments and ratings of an annotation tool's record."""

    judgments: tuple[Judgment, ...]
    ratings: tuple[Rating, ...]


class RankedTiers(NamedTuple):
    """One source's ranking of some responses: tiers, best first."""

    source: RankingSource
    tiers: tuple[tuple[str, ...], ...]


PROMPT_NAMES = ("prompt", "instruction", "question", "input", "query", "conversation", "messages", "text", "context")
"""The names of a prompt's field, in order of preference."""
_ANSWER = re.compile(r"(response|completion|generation|reply|answer|output|text|candidate)[-_ ]?\w*|chosen|rejected")
_LETTERS = ascii_uppercase
_ITEM_TEXTS = ("body", "text", "content", "html", "title")


class NamedItem(NamedTuple):
    """The fields of a record by their meaning: ``others`` are neither the prompt nor an answer.

    ``item_key`` and ``text_key`` are set where the answers are items of a list (``[{"id": …, "body": …}, …]``), and
    ``item_key`` alone where they are its texts, which are named A, B, ….
    """

    prompt_key: str
    messages: tuple[Message, ...]
    responses: tuple[Response, ...]
    others: JsonObject
    item_key: str | None = None
    text_key: str | None = None


def named_item(
    data: JsonObject, place: Place, warnings: Counter[str], *, ranked: Collection[str] = (), has_items: bool = False
) -> NamedItem:
    """Return the prompt under the first of ``PROMPT_NAMES``, and the answers in a list of items or under answer names.

    Names of answers are those that are ``ranked``, or begin as answers do (``response``, ``answer``, ``output``, …).
    Raises RecordError without a prompt or an answer, or where one is neither a text nor turns.
    """
    prompt_key = next((name for name in PROMPT_NAMES if name in data and name not in ranked), None)
    if prompt_key is None:
        raise RecordError("no prompt among the fields", where=place, allowed=", ".join(PROMPT_NAMES))
    messages = turns_of(data[prompt_key], place, prompt_key, role="user")
    for value in data.values():
        if isinstance(value, list) and value and isinstance(value[0], dict) and "role" in value[0]:
            count_other_keys(value, warnings)
    lists = [name for name, value in data.items() if has_items and name != prompt_key and _is_items(value)]
    item_key = lists[0] if lists else None
    if item_key is not None:
        text_key = next(name for name in _ITEM_TEXTS if name in data[item_key][0])
        responses = read_items(data[item_key], text_key, place._replace(path=item_key))
        others = {name: value for name, value in data.items() if name not in (prompt_key, item_key)}
        return NamedItem(prompt_key, messages, responses, others, item_key, text_key)
    text_lists = [name for name, value in data.items() if has_items and name != prompt_key and _are_texts(value)]
    text_lists.sort(key=is_answer_name, reverse=True)
    if text_lists:
        letters = zip(_LETTERS, data[text_lists[0]], strict=False)
        responses = tuple(Response(id=letter, text=text) for letter, text in letters)
        others = {name: value for name, value in data.items() if name not in (prompt_key, text_lists[0])}
        return NamedItem(prompt_key, messages, responses, others, text_lists[0])
    names = [name for name in data if name != prompt_key and (name in ranked or is_answer_name(name))]
    # An answer's name with another value (a number of tokens) is not an answer.
    answers = {name: data[name] for name in names if name in ranked or isinstance(data[name], str | list)}
    if not answers:
        raise RecordError("no answer among the fields", where=place, allowed="names such as response1, response2")
    responses = tuple(
        response_of(name, turns_of(value, place, name, role="assistant")) for name, value in answers.items()
    )
    others = {name: value for name, value in data.items() if name != prompt_key and name not in answers}
    return NamedItem(prompt_key, messages, responses, others)


def is_answer_name(name: str) -> bool:
    """Return whether a field of this name is an answer even where no ranking names it."""
    return _ANSWER.fullmatch(name) is not None and name not in PROMPT_NAMES


def field_names(case: Case) -> dict[str, str]:
    """Return a name for each response's field: its id where that is an answer's name, else a free one."""
    names = {response.id: response.id for response in case.responses if is_answer_name(response.id)}
    for number, response in enumerate(case.responses, 1):
        if response.id not in names:
            free = (f"response{further}" for further in range(number, number + 2 * len(case.responses) + 1))
            names[response.id] = next(name for name in free if name not in names.values())
    return names


def form_facts(source: NamedItem, data: JsonObject) -> JsonObject:
    """Return the facts by which ``data_of`` writes the same names again, for ``as_read``."""
    items = data.get(source.item_key or "", ()) if source.text_key else ()
    return {
        "prompt": source.prompt_key,
        "item_key": source.item_key,
        "text_key": source.text_key,
        "ids": [item["id"] for item in items if not isinstance(item["id"], str)],
        "fields": source.item_key is None,
        "lists": [key for key, value in data.items() if isinstance(value, list) and key != source.item_key],
        "others": dict(source.others) or None,
    }


def data_of(
    case: Case, form: JsonObject, dropped: Counter[str], *, names: Mapping[str, str] | None = None
) -> JsonObject:
    """Return the prompt and the answers under the names of ``form``, else the answers as items or under ``names``."""
    prompt_key, lists = form.get("prompt", "prompt"), form.get("lists", ())
    prompt = text_or_list(case.prompt.messages, "user", as_list=prompt_key in lists)
    if form.get("fields"):
        names = {response.id: response.id for response in case.responses}
    if names is None and "item_key" in form and "text_key" not in form:
        answers: JsonObject = {form["item_key"]: [answer_text(response, dropped) for response in case.responses]}
    elif names is None:
        answers = {form.get("item_key", "items"): written_items(case, form, dropped, form.get("text_key", "body"))}
    else:
        answers = {
            name: text_or_list(answer_turns(response), "assistant", as_list=name in lists)
            for response in case.responses
            for name in [names[response.id]]
        }
    return {prompt_key: prompt, **answers, **form.get("others", {})}


def written_items(case: Case, form: JsonObject, dropped: Counter[str], text_key: str = "text") -> list[JsonObject]:
    """Return the responses as items of a list, with the ids that the form records."""
    row_ids = {str(name): name for name in form.get("ids", ())}
    items: list[JsonObject] = []
    for response in case.responses:
        fields = {"id": row_ids.get(response.id, response.id), text_key: answer_text(response, dropped)}
        items.append(other_meta(response.meta, fields, dropped) | fields)
    return items


def _is_items(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and "id" in item and "role" not in item for item in value)
        and any(isinstance(value[0].get(name), str) for name in _ITEM_TEXTS)
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and 1 < len(value) <= len(_LETTERS) and all(isinstance(text, str) for text in value)


def read_items(items: Sequence[Any], text_key: str, place: Place, *, noun: str = "item") -> tuple[Response, ...]:
    """Return the items of a list as responses. Raises RecordError for items without id and text, or of one id."""
    responses = []
    for index, item in enumerate(items):
        is_item = isinstance(item, dict) and isinstance(item.get(text_key), str)
        if not is_item or not isinstance(item.get("id"), str | int) or isinstance(item["id"], bool):
            where = place._replace(path=f"{place.path}[{index}]")
            problem, allowed = f"an {noun} without id and text", f'{{"id": …, "{text_key}": a text}}'
            raise RecordError(problem, where=where, allowed=allowed)
        meta = {key: value for key, value in item.items() if key not in ("id", text_key)}
        responses.append(Response(id=str(item["id"]), text=item[text_key], meta=meta or None))
    if len({response.id for response in responses}) < len(responses):
        raise RecordError(f"two {noun}s of one id", where=place, allowed="unique ids")
    return tuple(responses)


def judgments_of(ranked: RankedTiers) -> Iterator[Judgment]:
    """Yield a judgment on every two responses, the higher one left; equal ranks are ties."""
    placed = [(place, name) for place, tier in enumerate(ranked.tiers) for name in tier]
    for (high, left), (low, right) in combinations(placed, 2):
        verdict: Verdict = "tie" if high == low else "left"
        yield Judgment(left=left, right=right, verdict=verdict, **ranked.source._asdict())


def rankings_of(judgments: Iterable[Judgment], dropped: Counter[str]) -> list[RankedTiers]:
    """Return the judgments as rankings: one per source with consistent judgments of all pairs, else one per judgment.

    Judgments without a verdict have no ranking: they are counted.
    """
    by_source: defaultdict[RankingSource, list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        if judgment.verdict == "none":
            dropped["judgments without a verdict"] += 1
        else:
            by_source[RankingSource(judgment.judge, judgment.kind, judgment.task)].append(judgment)
    rankings: list[RankedTiers] = []
    for source, group in by_source.items():
        whole = _tiers(group)
        orders = [whole] if whole is not None else [_tiers([judgment]) for judgment in group]
        rankings += [RankedTiers(source, tiers) for tiers in orders if tiers is not None]
    return rankings


def without_tasks(case: Case) -> Case:
    """Return the case without the tasks of its evidence, for formats that write them as questions."""
    return with_each(
        case,
        judgment=lambda judgment: replace(judgment, task=None),
        rating=lambda rating: replace(rating, task=None),
    )


def without_people(case: Case) -> Case:
    """Return the case without the names of the people who judged, for formats whose judges are people."""
    return with_each(case, judgment=lambda item: replace(item, judge=UNKNOWN_JUDGE) if item.kind == "human" else item)


def _tiers(judgments: Sequence[Judgment]) -> tuple[tuple[str, ...], ...] | None:
    """Return the ranking that is equivalent to these judgments; null where there is none."""
    names = dict.fromkeys(name for judgment in judgments for name in (judgment.left, judgment.right))
    wins = Counter(dict.fromkeys(names, 0))
    verdicts: dict[frozenset[str], str | None] = {}
    for judgment in judgments:
        winner = {"left": judgment.left, "right": judgment.right}.get(judgment.verdict)
        verdicts[frozenset((judgment.left, judgment.right))] = winner
        wins.update([winner] if winner else [])
    if len(judgments) != len(verdicts) or len(verdicts) != len(names) * (len(names) - 1) // 2:
        return None
    # Responses that are equal have won against the same ones, so as many times: tiers go by the number of wins.
    for pair, winner in verdicts.items():
        first, second = pair
        better = first if wins[first] > wins[second] else second if wins[second] > wins[first] else None
        if better != winner:
            return None
    by_wins: defaultdict[int, list[str]] = defaultdict(list)
    for name in names:
        by_wins[wins[name]].append(name)
    return tuple(tuple(by_wins[number]) for number in sorted(by_wins, reverse=True))


def read_again(read: Callable[[], Evidence]) -> Evidence | None:
    """Return the evidence of annotations as they were read; null where they no longer fit the case."""
    try:
        return read()
    except RecordError:
        return None


class ToolFormat(NamedTuple):
    """A tool whose record holds a prompt with its answers, and all evidence: the differences between such tools.

    ``content_key`` is the key of prompt and answers, ``answer_keys`` those of the evidence, which ``read_answers``
    reads. ``ranked`` gives the names that the evidence ranks, ``evidence`` its judgments and ratings, ``write`` the
    evidence of a case under names of fields. ``has_items``: the answers may be items of a list. ``whole`` makes a
    record of the rows of a flat export, which share the ``group_key``.
    """

    kind: str
    content_key: str
    answer_keys: tuple[str, ...]
    supports: frozenset[str]
    matches: Callable[[JsonObject], bool]
    read_content: Callable[[Row], JsonObject]
    read_answers: Callable[[Row, str], Any]
    ranked: Callable[[JsonObject], set[str]]
    evidence: Callable[[JsonObject, Sequence[Response], Place, Counter[str]], ToolEvidence]
    write: Callable[[Case, Counter[str], Mapping[str, str]], JsonObject]
    has_items: bool = False
    whole: Callable[[Sequence[Row], Counter[str]], Row] = lambda rows, warnings: rows[0]
    group_key: Callable[[Row], object] | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys of a record."""
        return ("id", self.content_key, *self.answer_keys)

    def format(self) -> RowFormat:
        """Return the format of the tool's records."""
        shared = (self.kind, self.keys, self.supports, self.matches, self._parse, self._rows)
        return RowFormat(
            *shared, null_keys=self.keys, absent_keys=self.keys, made_keys=("id",), group_key=self.group_key
        )

    def _parse(self, reader: CaseReader) -> Case:
        """Return the case of a record. Answers that would be written differently are stored with its form."""
        row = self.whole(reader.rows, reader.warnings)
        reader = reader._replace(rows=[row])
        content = self.read_content(row)
        answers = {key: self.read_answers(row, key) for key in self.answer_keys}
        ranked = self.ranked(answers) & content.keys()
        place = row.at(self.content_key)
        item = named_item(content, place, reader.warnings, ranked=ranked, has_items=self.has_items)
        evidence = self.evidence(answers, item.responses, row.place, reader.warnings)
        row_id = row.value.get("id")
        prompt = reader.prompt(item.messages, name=None if row_id is None else str(row_id))
        case = Case(prompt=prompt, responses=item.responses, **evidence._asdict())
        written = self.write(case, Counter(), _own_names(case))
        differing = {key: value for key, value in answers.items() if value != written[key]}
        return replace(case, meta=reader.meta(id=row_id, **form_facts(item, content), said=differing or None))

    def _rows(self, case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield the record of a case."""
        count_lost(without_tasks(case), dropped, self.supports)
        names = _own_names(case)
        if not form and not self.has_items:
            names = field_names(case)
            dropped["response ids that are not field names"] += sum(old != new for old, new in names.items())
        content = data_of(case, form, dropped, names=None if self.has_items else names)
        row = {"id": form["id"] if str(form.get("id")) == case.prompt.id else case.prompt.id}
        yield row | {self.content_key: content, **self._answers(case, form.get("said", {}), names, dropped)}

    def _answers(
        self, case: Case, answers_read: JsonObject, names: Mapping[str, str], dropped: Counter[str]
    ) -> JsonObject:
        """Return the answers as they were read while they mean what the case holds; else count and write new ones."""
        if answers_read:
            answers = self.write(case, Counter(), names) | answers_read
            place = Place("the row to write")
            evidence = read_again(lambda: self.evidence(answers, case.responses, place, Counter()))
            if evidence == (case.judgments, case.ratings):
                return answers
            dropped["annotations written anew"] += 1
        return self.write(case, dropped, names)


def _own_names(case: Case) -> dict[str, str]:
    return {response.id: response.id for response in case.responses}
