"""Prodigy's answers as judgments, and judgments as answers to a task."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Judgment, Response
from steelyard.plugins.formats._fields import form_of, list_field, with_meta
from steelyard.plugins.formats._pairwise import answer_text, conversation_of
from steelyard.plugins.formats._parts import UNKNOWN, count_lost
from steelyard.plugins.formats._rankings import without_people

KIND = "prodigy"
PERSONAL = ("accept", "answer", "_session_id", "_annotator_id", "_timestamp")
"""What a row says of one answer: all other keys are of the task."""
KEYS = ("text", "options", *PERSONAL)
_ANSWERS = ("accept", "reject", "ignore")


def task_of(row: Row) -> dict[str, Any]:
    """The row without what it says of one answer."""
    return {key: value for key, value in row.value.items() if key not in PERSONAL}


def options_of(row: Row) -> tuple[Response, ...]:
    """The options as responses. Raises RecordError for options without id and text, or of one id."""
    responses = []
    for index, option in enumerate(list_field(row, "options")):
        where = row.place._replace(path=f"options[{index}]")
        is_option = isinstance(option, dict) and isinstance(option.get("text"), str)
        if not is_option or not isinstance(option.get("id"), str | int) or isinstance(option["id"], bool):
            raise RecordError("an option without id and text", where=where, allowed='{"id": …, "text": a text}')
        meta = {key: value for key, value in option.items() if key not in ("id", "text")}
        responses.append(Response(id=str(option["id"]), text=option["text"], meta=meta or None))
    if len({response.id for response in responses}) < len(responses):
        raise RecordError("two options of one id", where=row.place._replace(path="options"), allowed="unique ids")
    return tuple(responses)


def judgments_in(row: Row, names: Sequence[str], noted: Counter[str]) -> Iterator[Judgment]:
    """What the answer says of the options. Raises RecordError for an unknown answer, or one of no option."""
    answer = row.value.get("answer")
    accepted = [str(name) for name in list_field(row, "accept", default=())]
    if answer is None:
        return
    if answer not in _ANSWERS or not set(accepted) <= set(names):
        found = f"unknown answer {answer!r}" if answer not in _ANSWERS else "an accepted id that is no option's"
        raise RecordError(found, where=row.place, allowed=f"answer: {', '.join(_ANSWERS)}; accept: ids of options")
    judges = [str(row.value[key]) for key in ("_session_id", "_annotator_id") if row.value.get(key) is not None]
    said: dict[str, Any] = {"judge": (*judges, UNKNOWN)[0], "kind": "human"}
    others = [name for name in names if name not in accepted]
    if answer == "accept" and accepted and others:
        yield from (Judgment(left=one, right=other, verdict="left", **said) for one in accepted for other in others)
    elif answer == "accept" and accepted:
        yield from (Judgment(left=one, right=two, verdict="tie", **said) for one, two in combinations(accepted, 2))
    elif len(names) == 2:
        reason = "nothing chosen" if answer == "accept" else answer
        yield Judgment(left=names[0], right=names[1], verdict="none", reason=reason, **said)
    else:
        noted["tasks without a choice"] += 1


def prodigy_rows(case: Case, lost: Counter[str], carries: Collection[str]) -> Iterator[dict[str, Any]]:
    """The rows of a case: as they were read while they say the same, else one an annotator or a judgment."""
    count_lost(without_people(case), lost, carries)
    form = form_of(case, KIND)
    own = {str(name): name for name in form.get("ids", ())}
    question = conversation_of(case.prompt.messages, lost).question
    options = {response.id: _option(response, own, lost) for response in case.responses}
    rows = form.get("rows", ())
    if not rows or _read_again(rows, list(options)) != case.judgments:
        lost["annotations written anew"] += bool(rows)
        rows = list(_answers(case)) or [{}]
        shown = {name for row in rows for name in row.get("options", options)}
        lost["responses in no judgment"] += len(options.keys() - shown)
        rows = [row | {"accept": [own.get(name, name) for name in row["accept"]]} if row else row for row in rows]
    for row in rows:
        shown = [options[name] for name in row.get("options", options)]
        yield with_meta({"text": question, **row, "options": shown}, case, KEYS, lost)


def _option(response: Response, own: Mapping[str, Any], lost: Counter[str]) -> dict[str, Any]:
    said = {"id": own.get(response.id, response.id), "text": answer_text(response, lost)}
    clashing = len(said.keys() & (response.meta or {}).keys())
    if clashing:
        lost["response meta under the format's own names"] += clashing
    return {**(response.meta or {}), **said}


def _read_again(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> tuple[Judgment, ...]:
    return tuple(one for row in rows for one in judgments_in(Row(Place("the row to write"), row), names, Counter()))


def _answers(case: Case) -> Iterator[dict[str, Any]]:
    """An annotator's judgments as one answer where one says them all, else each as a task of two options."""
    by_judge: defaultdict[str, list[Judgment]] = defaultdict(list)
    for judgment in case.judgments:
        by_judge[judgment.judge].append(judgment)
    names = [response.id for response in case.responses]
    for judge, said in by_judge.items():
        who = {} if judge == UNKNOWN else {"_session_id": judge}
        pairs = _ordered(said)
        whole = {"accept": list(dict.fromkeys(better for better, _ in pairs)), "answer": "accept", **who}
        if len(pairs) == len(said) and sorted(_ordered(_read_again([whole], names))) == sorted(pairs):
            yield whole
            continue
        for one in said:
            pair = [one.left, one.right]
            chosen = {"left": [one.left], "right": [one.right], "tie": pair}.get(one.verdict, [])
            answer = "accept" if chosen else "reject" if one.reason == "reject" else "ignore"
            yield {"accept": chosen, "answer": answer, **who, "options": pair}


def _ordered(judgments: Sequence[Judgment]) -> list[tuple[str, str]]:
    """Which is better than which, however they stood; nothing for verdicts that name none."""
    ends = {"left": lambda one: (one.left, one.right), "right": lambda one: (one.right, one.left)}
    return [ends[one.verdict](one) for one in judgments if one.verdict in ends]
