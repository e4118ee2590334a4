"""Prodigy's choice tasks: a text, options, and what an annotator accepted.

Written from the public documentation of Prodigy's choice interface and its support forum (the tool is not public):
``{text, options: [{id, text}], accept: [ids], answer}`` with ``_session_id``, ``_annotator_id``, ``_input_hash``,
``_task_hash`` and ``_timestamp``. With the answer ``accept``, every accepted option is better than every other one;
where all are accepted, they are ties. ``reject``, ``ignore`` and an empty choice give no verdict: of two options that
is a judgment that says so, of more it is counted. The judge is the session, or the annotator where there is one.
Rows that follow each other and differ only in who answered what are one case.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations, groupby

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Judgment, Message, Response
from steelyard.curation.format_support import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._annotation_items import without_people
from steelyard.plugins.formats._conversations import conversation_of
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_text,
    as_read,
    form_of,
    other_meta,
    with_meta,
    with_prompt,
)

KIND = "prodigy"
PERSONAL = ("accept", "answer", "_session_id", "_annotator_id", "_timestamp")
"""What a row says of one answer: all other keys are of the task."""
KEYS = ("text", "options", *PERSONAL)
_ANSWERS = ("accept", "reject", "ignore")


class Prodigy:
    """A row an annotator's answer to a task."""

    keys = KEYS
    supports = carrying("prompt meta", "response ids", "response meta", "more than two responses", "judgments")

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a text with options and an answer, or the hash of a task."""
        return (
            {"text", "options"} <= row.keys()
            and isinstance(row["options"], list)
            and ("answer" in row or "_task_hash" in row)
        )

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with judgments, one for each run of rows of a task."""
        ids = PromptIds(warnings)
        for task, together in groupby(rows, key=task_of):
            group = list(together)
            first = group[0]
            text, responses = first.text("text"), options_of(first)
            names = [response.id for response in responses]
            yield Case(
                prompt=with_prompt(
                    (Message(role="user", content=text),), id=ids.take(Row(first.place, task)), meta=first.others(KEYS)
                ),
                responses=responses,
                judgments=tuple(judgment for row in group for judgment in judgments_in(row, names, warnings)),
                meta=as_read(
                    KIND,
                    ids=[option["id"] for option in first.value["options"] if not isinstance(option["id"], str)],
                    rows=[{key: row.value[key] for key in PERSONAL if key in row.value} for row in group],
                ),
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row an annotator; a task that nobody has answered where a case has no judgments."""
        for case in cases:
            yield from prodigy_rows(case, dropped, self.supports)


def task_of(row: Row) -> JsonObject:
    """Return the row without what it says of one answer."""
    return {key: value for key, value in row.value.items() if key not in PERSONAL}


def options_of(row: Row) -> tuple[Response, ...]:
    """Return the options as responses. Raises RecordError for options without id and text, or of one id."""
    responses = []
    for index, option in enumerate(row.items("options")):
        where = row.at(f"options[{index}]")
        is_option = isinstance(option, dict) and isinstance(option.get("text"), str)
        if not is_option or not isinstance(option.get("id"), str | int) or isinstance(option["id"], bool):
            raise RecordError("an option without id and text", where=where, allowed='{"id": …, "text": a text}')
        meta = {key: value for key, value in option.items() if key not in ("id", "text")}
        responses.append(Response(id=str(option["id"]), text=option["text"], meta=meta or None))
    if len({response.id for response in responses}) < len(responses):
        raise RecordError("two options of one id", where=row.at("options"), allowed="unique ids")
    return tuple(responses)


def judgments_in(row: Row, names: Sequence[str], warnings: Counter[str]) -> Iterator[Judgment]:
    """Yield the judgments of an answer. Raises RecordError for an unknown answer or option."""
    answer = row.value.get("answer")
    accepted = [str(name) for name in row.items("accept", default=())]
    if answer is None:
        return
    if answer not in _ANSWERS or not set(accepted) <= set(names):
        problem = f"unknown answer {answer!r}" if answer not in _ANSWERS else "an accepted id that is not an option's"
        raise RecordError(problem, where=row.place, allowed=f"answer: {', '.join(_ANSWERS)}; accept: ids of options")
    judges = [str(row.value[key]) for key in ("_session_id", "_annotator_id") if row.value.get(key) is not None]
    judge: JsonObject = {"judge": (*judges, UNKNOWN)[0], "kind": "human"}
    others = [name for name in names if name not in accepted]
    if answer == "accept" and accepted and others:
        yield from (
            Judgment(left=better, right=other, verdict="left", **judge) for better in accepted for other in others
        )
    elif answer == "accept" and accepted:
        yield from (
            Judgment(left=better, right=two, verdict="tie", **judge) for better, two in combinations(accepted, 2)
        )
    elif len(names) == 2:
        reason = "nothing chosen" if answer == "accept" else answer
        yield Judgment(left=names[0], right=names[1], verdict="none", reason=reason, **judge)
    else:
        warnings["tasks without a choice"] += 1


def prodigy_rows(case: Case, dropped: Counter[str], supports: Collection[str]) -> Iterator[JsonObject]:
    """Yield the rows of a case: as they were read while they say the same, else one an annotator or a judgment."""
    count_lost(without_people(case), dropped, supports)
    form = form_of(case, KIND)
    row_ids = {str(name): name for name in form.get("ids", ())}
    question = conversation_of(case.prompt.messages, dropped).question
    options = {response.id: _option(response, row_ids, dropped) for response in case.responses}
    rows = form.get("rows", ())
    if not rows or _read_again(rows, list(options)) != case.judgments:
        dropped["annotations written anew"] += bool(rows)
        rows = list(_answers(case)) or [{}]
        shown = {name for row in rows for name in row.get("options", options)}
        dropped["responses in no judgment"] += len(options.keys() - shown)
        rows = [row | {"accept": [row_ids.get(name, name) for name in row["accept"]]} if row else row for row in rows]
    for row in rows:
        shown = [options[name] for name in row.get("options", options)]
        yield with_meta({"text": question, **row, "options": shown}, case, KEYS, dropped)


def _option(response: Response, row_ids: JsonObject, dropped: Counter[str]) -> JsonObject:
    fields = {"id": row_ids.get(response.id, response.id), "text": answer_text(response, dropped)}
    return other_meta(response.meta, fields, dropped) | fields


def _read_again(rows: Sequence[JsonObject], names: Sequence[str]) -> tuple[Judgment, ...]:
    return tuple(
        judgment for row in rows for judgment in judgments_in(Row(Place("the row to write"), row), names, Counter())
    )


def _answers(case: Case) -> Iterator[JsonObject]:
    """Yield an annotator's judgments as one answer where one says them all, else each as a task of two options."""
    by_judge: defaultdict[str, list[Judgment]] = defaultdict(list)
    for judgment in case.judgments:
        by_judge[judgment.judge].append(judgment)
    names = [response.id for response in case.responses]
    for judge, judgments in by_judge.items():
        who = {} if judge == UNKNOWN else {"_session_id": judge}
        pairs = _ordered(judgments)
        whole = {"accept": list(dict.fromkeys(better for better, _ in pairs)), "answer": "accept", **who}
        if len(pairs) == len(judgments) and sorted(_ordered(_read_again([whole], names))) == sorted(pairs):
            yield whole
            continue
        for judgment in judgments:
            pair = [judgment.left, judgment.right]
            chosen = {"left": [judgment.left], "right": [judgment.right], "tie": pair}.get(judgment.verdict, [])
            answer = "accept" if chosen else "reject" if judgment.reason == "reject" else "ignore"
            yield {"accept": chosen, "answer": answer, **who, "options": pair}


def _ordered(judgments: Sequence[Judgment]) -> list[tuple[str, str]]:
    """Return the (better, worse) pairs of the judgments; nothing for verdicts without a better one."""
    ends = {
        "left": lambda judgment: (judgment.left, judgment.right),
        "right": lambda judgment: (judgment.right, judgment.left),
    }
    return [ends[judgment.verdict](judgment) for judgment in judgments if judgment.verdict in ends]


KINDS = {"prodigy": without_settings(Prodigy(), __doc__)}
