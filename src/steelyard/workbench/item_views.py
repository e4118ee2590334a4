"""An item as alignment and review see it: letters in place of ids, opinions without names, and the answer of a form.

A response has the same letter in all tasks of an item and for everybody who talks about it; letters are drawn for each
item, so that none belongs to a model. People are “you” and “the other”, or have numbers in the order of their answers.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import HIGHEST_SCORE, LOWEST_SCORE, BucketComparison, Choice, TaskAnswer
from steelyard.core.errors import ConfigError
from steelyard.core.numerics import generator
from steelyard.workbench.blinding import BlindText
from steelyard.workbench.disputes import TaskEvidence
from steelyard.workbench.projects import case_of
from steelyard.workbench.tables import StoredItem, StoredPerson, StoredRemark

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Opinion(NamedTuple):
    """What one voice says of a task; the ranking is ``A > B = C``. ``kind``: ``answer``, ``proposal``, ``settled``."""

    voice: str
    kind: str
    ranking: str
    scores: tuple[tuple[str, int], ...]
    discarded: tuple[tuple[str, str], ...]
    cannot_judge: str | None
    remark: str | None


class FormRow(NamedTuple):
    """A response in the form of an answer, with what it begins with: score and place as text, reason of a discard."""

    letter: str
    score: str
    place: str
    discard: str


class TaskPanel(NamedTuple):
    """A task on a page: what everybody says, the pairs in dispute, and the form where the visitor may answer."""

    task: int
    letters: str
    opinions: tuple[Opinion, ...]
    disputed: tuple[str, ...]
    is_open: bool
    settled_by: str
    form: tuple[FormRow, ...]


class ItemPanels(NamedTuple):
    """An item on a page. ``responses`` are letter, text and whether people discarded it; ``remarks`` voice and text."""

    item: StoredItem
    turns: tuple[tuple[str, str], ...]
    responses: tuple[tuple[str, str, bool], ...]
    panels: tuple[TaskPanel, ...]
    remarks: tuple[tuple[str, str], ...]


def view_item(session: Session, item: StoredItem, evidence: Sequence[TaskEvidence], visitor: int) -> ItemPanels:
    """Return the view of an item for a visitor, with those of its tasks that are handed in."""
    case = case_of(item)
    order = generator(item.id, "letters").permutation(len(case.responses)).tolist()
    letters = {case.responses[place].id: _letter(number) for number, place in enumerate(order)}
    texts = {response.id: BlindText(response.text or "").shown for response in case.responses}
    remarks = session.scalars(select(StoredRemark).where(StoredRemark.item_id == item.id).order_by(StoredRemark.id))
    talk = [(remark.person_id, remark.text) for remark in remarks]
    voices = _voices(session, [person for each in evidence for person in each.answers], talk, visitor)
    return ItemPanels(
        item=item,
        turns=tuple((turn.role, turn.content) for turn in case.prompt.messages),
        responses=tuple((letter, texts[response], response in item.discarded) for response, letter in letters.items()),
        panels=tuple(_panel(each, letters, voices, visitor) for each in evidence),
        remarks=tuple((voices[person], text) for person, text in talk),
    )


class EnteredForm(NamedTuple):
    """What a form says of the responses of a task, in their order: score, place, and reason if discarded, as text."""

    scores: Sequence[str]
    places: Sequence[str]
    discards: Sequence[str]
    remark: str = ""


def entered_answer(responses: Sequence[str], form: EnteredForm) -> TaskAnswer:
    """Return the answer of a form. Equal places are ties; comparisons within equal scores follow from the places.

    Raises ConfigError for a form that no page sends, or that was not filled in.
    """
    scores, places, discards, remark = form
    if not len(responses) == len(scores) == len(places) == len(discards):
        raise ConfigError("the form has not one entry for each response", where="answer", do="reload the page")
    judged = [number for number, reason in enumerate(discards) if not reason]
    points = {
        responses[number]: _whole(scores[number], LOWEST_SCORE, HIGHEST_SCORE, where="score") for number in judged
    }
    place_of = {responses[number]: _whole(places[number], 1, len(responses), where="place") for number in judged}
    tiers = [
        tuple(response for response in place_of if place_of[response] == place)
        for place in sorted(set(place_of.values()))
    ]
    return TaskAnswer(
        scores=points,
        comparisons=tuple(
            BucketComparison(first=first, second=second, choice=_choice(place_of[first], place_of[second]))
            for first, second in combinations(points, 2)
            if points[first] == points[second]
        ),
        ranking=tuple(tiers),
        discarded={response: reason for response, reason in zip(responses, discards, strict=True) if reason},
        remark=remark.strip() or None,
    )


def _choice(first: int, second: int) -> Choice:
    return "same" if first == second else "better" if first < second else "worse"


def _whole(text: str, lowest: int, highest: int, *, where: str) -> int:
    if text.isascii() and text.isdecimal() and lowest <= int(text[:9]) <= highest:
        return int(text)
    raise ConfigError(f"{text[:20]!r}", where=where, allowed=f"{lowest} to {highest}", do="fill in every response")


def _letter(number: int) -> str:
    return _LETTERS[number % 26] + (str(number // 26 + 1) if number >= 26 else "")


def _voices(
    session: Session, answering: Sequence[int], talk: Sequence[tuple[int, str]], visitor: int
) -> Mapping[int, str]:
    """Return a key of the words for each person: ``you``, ``the other``, a number, or the role of a layer."""
    people = list(dict.fromkeys([*answering, *(person for person, _ in talk)]))
    rows = session.execute(select(StoredPerson.id, StoredPerson.role).where(StoredPerson.id.in_(people)))
    roles = {person: role for person, role in rows}  # noqa: C416 - `dict` takes no rows
    annotators = [person for person in people if roles[person] == "annotator"]
    is_pair = visitor in annotators and len(annotators) == 2
    voices = {person: f"role {roles[person]}" for person in people}
    for number, person in enumerate(annotators, start=1):
        voices[person] = "voice other" if is_pair else f"{number}"
    return voices | {visitor: "voice you"}


def _panel(evidence: TaskEvidence, letters: Mapping[str, str], voices: Mapping[int, str], visitor: int) -> TaskPanel:
    opinions = [_opinion(voices[person], "answer", answer, letters) for person, answer in evidence.answers.items()]
    opinions += [_opinion(voices[person], "proposal", answer, letters) for person, answer in evidence.proposals.items()]
    if evidence.settled is not None:
        opinions.append(_opinion("voice settled", "settled", evidence.settled, letters))
    responses = evidence.task.responses
    mine = evidence.proposals.get(visitor) or evidence.answers.get(visitor) or TaskAnswer()
    places = {response: str(place) for place, tier in enumerate(mine.ranking, start=1) for response in tier}
    return TaskPanel(
        task=evidence.task.id,
        letters=" ".join(sorted(letters[response] for response in responses)),
        opinions=tuple(opinions),
        disputed=tuple(" – ".join(sorted(letters[response] for response in pair)) for pair in evidence.disputed_pairs),
        is_open=evidence.is_open,
        settled_by=evidence.settled_by,
        form=tuple(
            FormRow(
                letters[response],
                str(mine.scores.get(response, "")),
                places.get(response, ""),
                mine.discarded.get(response, ""),
            )
            for response in responses
        ),
    )


def _opinion(voice: str, kind: str, answer: TaskAnswer, letters: Mapping[str, str]) -> Opinion:
    tiers = [" = ".join(sorted(letters[response] for response in tier)) for tier in answer.ranking]
    return Opinion(
        voice=voice,
        kind=kind,
        ranking=" > ".join(tiers),
        scores=tuple(sorted((letters[response], score) for response, score in answer.scores.items())),
        discarded=tuple(sorted((letters[response], reason) for response, reason in answer.discarded.items())),
        cannot_judge=answer.cannot_judge,
        remark=answer.remark,
    )
