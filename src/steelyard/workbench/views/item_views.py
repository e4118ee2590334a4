"""An item as alignment and review see it: letters in place of ids, opinions without names, and forms.

A response has the same letter in all tasks of an item and for everybody who talks about it; letters are drawn for each
item, so that none belongs to a model. People are “you” and “the other”, or have numbers in the order of their answers.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import Span, TaskAnswer
from steelyard.annotation.questions import Point, TaskQuestion
from steelyard.annotation.task_kinds import Catalogues, kind_named
from steelyard.core.text import answer_language, response_text
from steelyard.workbench.pipeline.discards import ItemDiscards, discards_of
from steelyard.workbench.pipeline.disputes import TaskEvidence, adjudication_order, evidence_of, letters_of
from steelyard.workbench.pipeline.planted_reviews import (
    ShownReview,
    evidence_shown,
    item_as_shown,
    item_with_number,
    remarks_shown,
)
from steelyard.workbench.pipeline.projects import ProjectSettings, case_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.pipeline.submissions import guideline_of
from steelyard.workbench.storage.tables import (
    StoredGuideline,
    StoredItem,
    StoredPerson,
    StoredPlantedReview,
    StoredRemark,
    StoredTask,
)
from steelyard.workbench.views.adjudication_forms import question_fields
from steelyard.workbench.views.blinding import BlindText


class Opinion(NamedTuple):
    """One voice on a task; the ranking is ``A > B = C``. ``kind``: ``answer``, ``proposal``, ``settled``.

    ``entries`` are the names and values of questions about the whole task, ``marks`` a letter, the words that were
    marked, the kind of problem, and the remark or severity.
    """

    voice: str
    kind: str
    ranking: str
    scores: tuple[tuple[str, int], ...]
    discarded: tuple[tuple[str, str], ...]
    entries: tuple[tuple[str, str], ...]
    marks: tuple[tuple[str, str, str, str | None], ...]
    cannot_judge: str | None
    remark: str | None


class FormRow(NamedTuple):
    """A response in the form of an answer, with what it begins with: score and place as text, reason of a discard."""

    letter: str
    score: str
    place: str
    discard: str


class QuestionRow(NamedTuple):
    """A question in the form of an answer: its letters, the name of its field, and the value that it begins with."""

    question: TaskQuestion
    letters: tuple[str, ...]
    name: str
    value: str


class TaskPanel(NamedTuple):
    """A task on a page: what everybody says, the points in dispute, and the form where the visitor may answer.

    ``disputed`` are the sort of each point with its letters, as ``A – B``, or with the name of the question.
    ``questions`` are empty for triples, whose form has a row for each response. ``marks``: the question whose words
    name the problems that people marked.
    """

    task: int
    letters: str
    opinions: tuple[Opinion, ...]
    disputed: tuple[tuple[str, str], ...]
    is_open: bool
    settled_by: str
    has_discards: bool
    marks: str
    form: tuple[FormRow, ...]
    questions: tuple[QuestionRow, ...]


class ItemPanels(NamedTuple):
    """An item on a page. ``responses`` are letter, text, and why people discarded it, null for one that is compared.

    ``discards``: how many tasks ended and were added for that; ``remarks`` are voice and text. ``answer_language``:
    that of the responses. ``guideline``: what answers of the visitor are filed under; null where there is none, or
    nobody answers.
    """

    item: StoredItem
    turns: tuple[tuple[str, str], ...]
    responses: tuple[tuple[str, str, str | None], ...]
    panels: tuple[TaskPanel, ...]
    remarks: tuple[tuple[str, str], ...]
    discards: ItemDiscards | None
    answer_language: str = ""
    guideline: StoredGuideline | None = None


class _Talk(NamedTuple):
    """Remarks of people on items beside their answers: their number and text by item, roles by person, discards."""

    remarks: Mapping[int, Sequence[tuple[int, str]]]
    roles: Mapping[int, str]
    discards: Mapping[int, ItemDiscards]


def view_item(
    session: Session,
    item: StoredItem,
    evidence: Sequence[TaskEvidence],
    visitor: int,
    settings: ProjectSettings,
    *,
    remarks: Sequence[tuple[int, str]] | None = None,
) -> ItemPanels:
    """Return the view of an item for a visitor, with those of its tasks that are handed in.

    ``remarks``: person and text of what is shown of the discussion; null for all of it.
    """
    # A planted review shows its item under another number: what is stored about it is under its own.
    stored = evidence[0].task.item_id if evidence else item.id
    talk = _talk_about(session, {stored: evidence}, None if remarks is None else {stored: remarks})
    view = _view(item, evidence, talk, visitor, catalogues_of(settings))
    language = session.get_one(StoredPerson, visitor).language
    return view._replace(guideline=guideline_of(session, item.project_id, item.category, language))


def item_panels(
    session: Session,
    items: Sequence[int],
    visitor: int,
    settings: ProjectSettings,
    reviews: Mapping[int, ShownReview],
) -> dict[int, ItemPanels]:
    """Return the views of items of a project with the tasks of their present rounds, the most disputed task first.

    ``items`` are the numbers with which the visitor sees them, as those of the result. ``reviews``: the planted reviews
    of them that the visitor sees, by item; these items are seen as they are shown.
    """
    numbers = {item for number in items if (item := item_with_number(reviews, number)) is not None}
    stored = list(session.scalars(select(StoredItem).where(StoredItem.id.in_(numbers))))
    evidence, remarks = evidence_of(session, stored), _remarks(session, numbers)
    for item in stored:
        if (review := reviews.get(item.id)) is not None:
            evidence[item.id] = evidence_shown(session, item, review)
            remarks[item.id] = remarks_shown(session, session.get_one(StoredPlantedReview, review.id))
    talk, catalogues = _talk_about(session, evidence, remarks), catalogues_of(settings)
    views: dict[int, ItemPanels] = {}
    for item in stored:
        review = reviews.get(item.id)
        shown = item if review is None else item_as_shown(item, review)
        view = _view(shown, evidence[item.id], talk, visitor, catalogues)
        panels = tuple(sorted(view.panels, key=lambda panel: -len(panel.disputed)))
        views[shown.id] = view._replace(panels=panels)
    return views


def _view(
    item: StoredItem, evidence: Sequence[TaskEvidence], talk: _Talk, visitor: int, catalogues: Catalogues
) -> ItemPanels:
    case, stored = case_of(item), evidence[0].task.item_id if evidence else item.id
    # The letters of which remarks speak.
    letters = letters_of(stored, case)
    texts = {response.id: BlindText(response_text(response)) for response in case.responses}
    remarks = talk.remarks.get(stored, ())
    people = [person for each in evidence for person in (*each.answers, *each.proposals)]
    voices = _voices(list(dict.fromkeys(people)), remarks, talk.roles, visitor)
    discards = talk.discards.get(stored) if item.discarded else None
    reasons = {} if discards is None else discards.reasons
    return ItemPanels(
        item=item,
        discards=discards,
        turns=tuple((turn.role, turn.content) for turn in case.prompt.messages),
        responses=tuple(
            (letter, texts[response].shown, reasons.get(response, "") if response in item.discarded else None)
            for response, letter in letters.items()
        ),
        panels=tuple(_panel(each, _ShownNames(letters, texts, voices), visitor, catalogues) for each in evidence),
        remarks=tuple((voices[person], text) for person, text in remarks),
        answer_language=answer_language(case.prompt) or "",
    )


def form_order(item: StoredItem, task: StoredTask) -> tuple[str, ...]:
    """Return the responses of a task in the order of a form: by their letters, where the kind has no fixed order."""
    return adjudication_order(task.responses, kind_named(task.kind), letters_of(item.id, case_of(item)))


def _talk_about(
    session: Session,
    evidence: Mapping[int, Sequence[TaskEvidence]],
    remarks: Mapping[int, Sequence[tuple[int, str]]] | None = None,
) -> _Talk:
    """Return remarks about items, the roles of all who answered or remarked, and discards; ``evidence``: by item."""
    remarks = _remarks(session, evidence) if remarks is None else remarks
    people = {person for of_item in evidence.values() for each in of_item for person in each.answers}
    people |= {person for of_item in remarks.values() for person, _ in of_item}
    roles = session.execute(select(StoredPerson.id, StoredPerson.role).where(StoredPerson.id.in_(people)))
    by_person = {person: role for person, role in roles}  # noqa: C416 - `dict` takes no rows
    return _Talk(remarks, by_person, discards_of(session, evidence))


def _remarks(session: Session, items: Collection[int]) -> dict[int, list[tuple[int, str]]]:
    remark, remarks = StoredRemark, defaultdict[int, list[tuple[int, str]]](list)
    rows = session.execute(
        select(remark.item_id, remark.person_id, remark.text).where(remark.item_id.in_(items)).order_by(remark.id)
    )
    for item, person, text in rows:
        remarks[item].append((person, text))
    return remarks


def _voices(
    answered: Sequence[int], remarks: Sequence[tuple[int, str]], roles: Mapping[int, str], visitor: int
) -> Mapping[int, str]:
    """Return a key of the words for each person: ``you``, ``the other``, a number, or the role of a layer.

    Who ``answered`` the tasks did so as an annotator, also where the role is another now.
    """
    others = dict.fromkeys(person for person, _ in remarks if person not in answered)
    annotators = [*answered, *(person for person in others if roles[person] == "annotator")]
    is_pair = visitor in annotators and len(annotators) == 2
    voices = {person: f"role {roles[person]}" for person in others}
    for number, person in enumerate(annotators, start=1):
        voices[person] = "voice other" if is_pair else f"{number}"
    return voices | {visitor: "voice you"}


class _ShownNames(NamedTuple):
    """Names of responses and people on the page, and the texts shown."""

    letters: Mapping[str, str]
    texts: Mapping[str, BlindText]
    voices: Mapping[int, str]


def _panel(evidence: TaskEvidence, names: _ShownNames, visitor: int, catalogues: Catalogues) -> TaskPanel:
    letters, voices = names.letters, names.voices
    opinions = [_opinion(voices[person], "answer", answer, names) for person, answer in evidence.answers.items()]
    opinions += [_opinion(voices[person], "proposal", answer, names) for person, answer in evidence.proposals.items()]
    if evidence.settled is not None:
        opinions.append(_opinion("voice settled", "settled", evidence.settled, names))
    kind = kind_named(evidence.task.kind)
    responses = adjudication_order(evidence.task.responses, kind, letters)
    mine = evidence.proposals.get(visitor) or evidence.answers.get(visitor) or TaskAnswer()
    places = {response: str(place) for place, tier in enumerate(mine.ranking, start=1) for response in tier}
    questions = kind.questions(responses, catalogues)
    fields = question_fields(questions, mine)
    return TaskPanel(
        task=evidence.task.id,
        letters=" ".join(sorted(letters[response] for response in responses)),
        opinions=tuple(opinions),
        disputed=tuple(_disputed(point, letters) for point in evidence.disputed),
        is_open=evidence.is_open,
        settled_by=evidence.settled_by,
        has_discards=kind.has_discards,
        marks=next((each.name for each in questions if each.input == "marks"), "marks"),
        form=tuple(
            FormRow(
                letters[response],
                str(mine.scores.get(response, "")),
                places.get(response, ""),
                mine.discarded.get(response, ""),
            )
            for response in responses
        ),
        questions=tuple(
            QuestionRow(each.question, tuple(letters[response] for response in each.question.responses), *each[1:])
            for each in fields
        ),
    )


def _disputed(point: Point, letters: Mapping[str, str]) -> tuple[str, str]:
    sort, *about = point
    return sort, about[0] if sort == "entry" else " – ".join(sorted(letters[response] for response in about))


def _opinion(voice: str, kind: str, answer: TaskAnswer, names: _ShownNames) -> Opinion:
    letters = names.letters
    tiers = [" = ".join(sorted(letters[response] for response in tier)) for tier in answer.ranking]
    return Opinion(
        voice=voice,
        kind=kind,
        ranking=" > ".join(tiers),
        scores=tuple(sorted((letters[response], score) for response, score in answer.scores.items())),
        discarded=tuple(sorted((letters[response], reason) for response, reason in answer.discarded.items())),
        entries=tuple(answer.entries.items()),
        marks=tuple(
            _mark(letters[response], names.texts[response], span)
            for response, spans in answer.spans.items()
            for span in spans
        ),
        cannot_judge=answer.cannot_judge,
        remark=answer.remark,
    )


def _mark(letter: str, text: BlindText, span: Span) -> tuple[str, str, str, str | None]:
    start, end, label, remark = span
    first, last = text.shown_span(start, end)
    return letter, text.shown[first:last], label, remark
