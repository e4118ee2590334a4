"""Label Studio's results as evidence, and evidence as annotations and predictions."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.types import Case, Judgment, Kind, Rating, Response, Verdict
from steelyard.plugins.formats._fields import form_of, is_number, with_meta
from steelyard.plugins.formats._named import data_of
from steelyard.plugins.formats._parts import UNKNOWN, count_lost
from steelyard.plugins.formats._rankings import Ranked, Voice, judgments_of, rankings_of, without_tasks

KIND = "label_studio"
LISTS = ("annotations", "predictions")
KEYS = ("id", "data", *LISTS)
_UNSORTED = "_"
_VERDICTS: dict[str, Verdict] = {"left": "left", "right": "right"}


class Evidence(NamedTuple):
    """What the results of a task say."""

    judgments: tuple[Judgment, ...]
    ratings: tuple[Rating, ...]


class Said(NamedTuple):
    """One result: who said it of which responses, and where it stands."""

    voice: Voice
    type: Any
    value: Mapping[str, Any]
    targets: tuple[str, ...]
    place: Place


def evidence_of(
    said: Mapping[str, Sequence[Any]], responses: Sequence[Response], place: Place, noted: Counter[str]
) -> Evidence:
    """Judgments and ratings of all results. Raises RecordError for an annotation that is none."""
    names = [response.id for response in responses]
    judgments: list[Judgment] = []
    ratings: list[Rating] = []
    for key, annotations in said.items():
        for index, annotation in enumerate(annotations):
            where = place._replace(path=f"{key}[{index}]")
            voice = _voice(key, annotation, where)
            if annotation.get("was_cancelled"):
                noted["cancelled annotations"] += 1
                if len(names) == 2:
                    said_of_both: dict[str, Any] = voice._asdict() | {"reason": "cancelled"}
                    judgments.append(Judgment(left=names[0], right=names[1], verdict="none", **said_of_both))
                continue
            for result in _results(voice, annotation, names, where):
                if result.type == "rating" and is_number(result.value.get("rating")) and len(result.targets) == 1:
                    ratings.append(_rating(result))
                elif (found := list(_judgments(result, names))) or result.type in ("pairwise", "ranker"):
                    judgments += found
                else:
                    noted["results that are no comparison and no rating of a response"] += 1
    return Evidence(tuple(judgments), tuple(ratings))


def _voice(key: str, annotation: Any, where: Place) -> Voice:
    if not isinstance(annotation, dict) or not isinstance(annotation.get("result") or [], list):
        raise RecordError("an annotation without results", where=where, allowed='{"result": […], …}')
    kind: Kind = "human" if key == "annotations" else "llm"
    who = annotation.get("completed_by" if kind == "human" else "model_version")
    if isinstance(who, dict):
        who = who.get("email", who.get("id"))
    return Voice(UNKNOWN if who is None else str(who), kind)


def _results(voice: Voice, annotation: Mapping[str, Any], names: Sequence[str], where: Place) -> Iterator[Said]:
    for number, result in enumerate(annotation.get("result") or ()):
        place = where._replace(path=f"{where.path}.result[{number}]")
        if not isinstance(result, dict) or not isinstance(result.get("value"), dict):
            raise RecordError("a result without a value", where=place, allowed='{"type": …, "value": {…}}')
        named = tuple(str(result.get("to_name") or "").split(","))
        targets = named if set(named) <= set(names) else tuple(names) if len(names) == 1 else ()
        task = result.get("from_name")
        said = voice._replace(task=task if isinstance(task, str) else None)
        yield Said(said, result.get("type"), result["value"], targets, place)


def _rating(result: Said) -> Rating:
    voice = result.voice
    return Rating(
        response=result.targets[0],
        rater=voice.judge,
        kind=voice.kind,
        dimension=voice.task or "rating",
        value=result.value["rating"],
    )


def _judgments(result: Said, names: Sequence[str]) -> Iterator[Judgment]:
    if result.type == "pairwise":
        selected = result.value.get("selected")
        targets = result.targets if len(result.targets) == 2 else tuple(names[:2])
        if selected is not None and (selected not in _VERDICTS or len(targets) < 2 or targets[0] == targets[1]):
            raise RecordError(f"unknown choice {selected!r} of two", where=result.place, allowed="left, right")
        if selected is not None:
            verdict = _VERDICTS[selected]
            yield Judgment(left=targets[0], right=targets[1], verdict=verdict, **result.voice._asdict())
    if result.type == "ranker":
        yield from judgments_of(Ranked(result.voice, _tiers(result, names)))


def _tiers(result: Said, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    given = result.value.get("ranker")
    lists = given if isinstance(given, dict) else {}
    ids = [str(name) for one in lists.values() if isinstance(one, list) for name in one]
    if not lists or not set(ids) <= set(names) or len(set(ids)) < len(ids):
        raise RecordError("a ranking that is not of the answers", where=result.place, allowed=", ".join(names))
    if len(lists) == 1:
        return tuple((str(name),) for one in lists.values() for name in one)
    return tuple(tuple(map(str, one)) for bucket, one in lists.items() if bucket != _UNSORTED and one)


def label_studio_row(case: Case, lost: Counter[str], carries: Collection[str]) -> dict[str, Any]:
    """The case as a task; what it cannot say is counted."""
    count_lost(without_tasks(case), lost, carries)
    form = form_of(case, KIND)
    said, written = form.get("said", {}), fresh_lists(case, lost if not form.get("said") else Counter())
    kept = {**written, **said}
    if said and evidence_of(kept, case.responses, Place("the row"), Counter()) == (case.judgments, case.ratings):
        written = kept
    elif said:
        lost["annotations written anew"] += 1
        written = fresh_lists(case, lost)
    row = {
        "id": form["id"] if str(form.get("id")) == case.prompt.id else case.prompt.id,
        "data": data_of(case, form, lost),
        **written,
    }
    absent = [key for key in form.get("absent", ()) if not written.get(key)]
    nulls = {key: None for key in form.get("null", ()) if key == "id" or not row.get(key)}
    return with_meta({key: row[key] for key in row if key not in absent} | nulls, case, KEYS, lost)


def fresh_lists(case: Case, lost: Counter[str]) -> dict[str, list[dict[str, Any]]]:
    """Annotations of people and predictions of models, one for each ranking or rating."""
    written: dict[str, list[dict[str, Any]]] = {key: [] for key in LISTS}
    results = [(one.voice, _ranking_result(one)) for one in rankings_of(case.judgments, lost)]
    for rating in case.ratings:
        value = {"from_name": rating.dimension, "to_name": rating.response, "type": "rating"}
        results.append((Voice(rating.rater, rating.kind), {**value, "value": {"rating": rating.value}}))
    for voice, result in results:
        if voice.kind == "human":
            written["annotations"].append({"completed_by": voice.judge, "was_cancelled": False, "result": [result]})
            continue
        if voice.kind == "model":
            lost["kinds of judges and raters"] += 1
        written["predictions"].append({"model_version": voice.judge, "result": [result]})
    return written


def _ranking_result(ranked: Ranked) -> dict[str, Any]:
    """Two answers in order as a pairwise result, more as a ranking, ties as buckets."""
    names = [name for tier in ranked.tiers for name in tier]
    is_strict = len(names) == len(ranked.tiers)
    if is_strict and len(names) == 2 and not any("," in name for name in names):
        task, value = ranked.voice.task or "pairwise", {"selected": "left"}
        return {"from_name": task, "to_name": ",".join(names), "type": "pairwise", "value": value}
    lists = {"ranking": names} if is_strict else {str(place): list(tier) for place, tier in enumerate(ranked.tiers, 1)}
    # A single list is an order: the empty bucket says that these are buckets.
    value = {"ranker": lists if is_strict else lists | {_UNSORTED: []}}
    return {"from_name": ranked.voice.task or "ranker", "to_name": "items", "type": "ranker", "value": value}
