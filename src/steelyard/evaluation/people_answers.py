"""Strict answers of people, or verdicts of LLMs, to pairs of a bench, and the label error that they show.

Answers are the strict judgments of one kind. Several of one person on a pair are one, answers of unnamed people those
of one person, and of a task that people settled later only the first answers count, because the last are not
independent.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Booleans, Integers
from steelyard.core.types import Case, Judgment, Kind
from steelyard.evaluation.columns import BenchColumns
from steelyard.ranking.judgment_table import Only, judgment_table
from steelyard.statistics.agreement import NUM_LABELS, TIED, UNLABELLED, count_labels, orient_labels, unique_labels
from steelyard.statistics.bootstrap import Blocks, draw_blocks
from steelyard.statistics.groups import Label, units_of
from steelyard.statistics.label_error import TOO_FEW, AnsweredPairs, LabelErrors, label_errors
from steelyard.statistics.unique_rows import find_codes, unique_codes
from steelyard.statistics.whole_prompts import MOST_RESPONSES, AnsweredPrompts, WholePrompts, right_prompts

NO_PEOPLE = "no strict judgment of a person"
ONE_PERSON = "no pair has answers of two people"
SETTLED_ALONE = "first answers are left out where people settled others"


class StrictAnswers(NamedTuple):
    """Strict answers to pairs of one case, (pair,): ``low`` and ``high`` are positions of responses.

    ``votes`` counts the answers for either, (pair, 2).
    """

    case: Integers
    low: Integers
    high: Integers
    votes: Integers
    num_people: int
    num_tied: int


def first_answers(judged: Mapping[int, Case], kind: Kind = "human") -> StrictAnswers:
    """Return the first answers of people, or of LLMs, one a person and pair, by the position of the case."""
    positions = np.array(sorted(judged), np.int64)
    table = judgment_table(map(_with_first_answers, (judged[at] for at in positions.tolist())), Only(kind=(kind,)))
    verdicts = table.verdicts
    width = int(max(verdicts.left.max(initial=0), verdicts.right.max(initial=0))) + 1
    key = verdicts.pair_keys(width)
    label = orient_labels(verdicts.left, verdicts.right, verdicts.verdict)
    assert UNLABELLED == NUM_LABELS, "a judgment without a verdict has the code of no label"
    labels = unique_labels(key, table.judge, label)
    is_strict = labels.label != TIED
    pairs, place = unique_codes(labels.item[is_strict], int(key.max(initial=-1)) + 1)
    counts = count_labels(place, labels.label[is_strict], len(pairs))
    return StrictAnswers(
        positions[pairs // width**2],
        pairs // width % width,
        pairs % width,
        counts[:, :TIED],
        len(np.unique(labels.rater[is_strict])),
        int((~is_strict).sum()),
    )


def _is_first(judgment: Judgment) -> bool:
    """Return whether it is an answer that a person gave before people settled the task together."""
    return judgment.meta is None or judgment.meta.get("stage") in {None, "annotation"}


def num_settled_alone(case: Case) -> int:
    """Count the pairs with settled answers of people and without their first ones."""
    pairs: tuple[set[frozenset[str]], set[frozenset[str]]] = (set(), set())
    for judgment in case.judgments:
        if judgment.kind == "human":
            pairs[_is_first(judgment)].add(frozenset((judgment.left, judgment.right)))
    settled, first = pairs
    return len(settled - first)


def _with_first_answers(case: Case) -> Case:
    """Return the case without answers that people settled together after their first ones."""
    first = tuple(filter(_is_first, case.judgments))
    return case if len(first) == len(case.judgments) else replace(case, judgments=first)


def labels_of(columns: BenchColumns, answers: StrictAnswers) -> Integers:
    """Return the bench pair that labels each answered pair, -1 for none."""
    first, second = (side - columns.start[columns.prompt] for side in (columns.better, columns.worse))
    width = int(max(answers.high.max(initial=0), first.max(initial=0), second.max(initial=0))) + 1
    key = (answers.case * width + answers.low) * width + answers.high
    wanted = (columns.prompt * width + np.minimum(first, second)) * width + np.maximum(first, second)
    place, has_answer = find_codes(key, wanted)
    label_of = np.full(len(key), -1)
    label_of[place[has_answer]] = np.flatnonzero(has_answer)
    return label_of


class PeopleErrors(NamedTuple):
    """The label error by people's answers, null with the reason in ``why``, and the counts that the measure has."""

    num_people: int
    num_pairs: int
    num_unanswered: int
    num_twice: int
    num_tied: int
    num_overruled: int
    num_settled_alone: int
    num_whole: int
    why: str | None
    errors: LabelErrors | None
    prompts: WholePrompts | None


def people_errors(columns: BenchColumns, is_right: Booleans, blocks: Blocks, *, seed: int) -> PeopleErrors:
    """Estimate the label error from people's answers; ``blocks`` are resamples of the included prompts."""
    answers = first_answers(columns.judged)
    is_twice = answers.votes.sum(axis=1) > 1
    label_of = labels_of(columns, answers)
    is_labelled = label_of >= 0
    is_used = is_labelled | is_twice
    is_in = columns.included.copy()
    is_in[answers.case[is_used]] = True
    if (is_in != columns.included).any():
        # Where people disagree a prompt may have no comparable pair: without it they would seem to agree.
        units = units_of(columns.names)
        names = [Label(units[at], columns.cells[at]) for at in np.flatnonzero(is_in).tolist()]
        blocks = draw_blocks(names, num_resamples=len(blocks.weights), seed=seed)
    is_turned = columns.better[label_of] > columns.worse[label_of]
    is_first = ~(is_labelled & is_turned)
    agreeing = np.where(is_first, *answers.votes.T)[is_used]
    # Without the first answers to tasks that people settled, they would seem to agree everywhere.
    num_settled = sum(map(num_settled_alone, columns.judged.values()))
    pairs = AnsweredPairs(
        (np.cumsum(is_in) - 1)[answers.case[is_used]],
        agreeing,
        answers.votes.sum(axis=1)[is_used] - agreeing,
        is_labelled[is_used],
        (is_right[label_of] & is_labelled)[is_used],
    )
    whole = [
        part._replace(prompt=(np.cumsum(is_in) - 1)[part.prompt])
        for part in answered_whole(columns, answers, label_of, is_right)
    ]
    has_answers = is_labelled.any() and is_twice.any() and not num_settled
    errors = label_errors(blocks, pairs) if has_answers else None
    why = TOO_FEW if is_twice.any() else ONE_PERSON
    why = SETTLED_ALONE if num_settled else NO_PEOPLE if not len(answers.case) else why
    return PeopleErrors(
        num_people=answers.num_people,
        num_pairs=int(is_labelled.sum()),
        num_unanswered=len(columns.prompt) - int(is_labelled.sum()),
        num_twice=int(is_twice.sum()),
        num_tied=answers.num_tied,
        num_overruled=int((pairs.is_labelled & (pairs.agreeing < pairs.contrary)).sum()),
        num_settled_alone=num_settled,
        num_whole=sum(len(part.prompt) for part in whole),
        why=None if errors is not None else why,
        errors=errors,
        prompts=None if errors is None else right_prompts(blocks, whole),
    )


def answered_whole(
    columns: BenchColumns, answers: StrictAnswers, label_of: Integers, is_right: Booleans
) -> list[AnsweredPrompts]:
    """Return the prompts whose pairs all have equally many answers, two or more, by their number of responses.

    ``label_of`` has the pair of the bench that labels each answered pair, -1 for none; ``is_right`` whether the model
    is right on each pair of the bench. ``prompt`` is the position of the case. Empty where prompts have one pair only.
    """
    size = np.diff(np.append(columns.start, len(columns.tier)))
    wrong = np.bincount(columns.prompt[~is_right], minlength=len(size))
    total = answers.votes.sum(axis=1)
    first, last = (np.full(len(size), bound) for bound in (np.iinfo(np.int64).max, 0))
    np.minimum.at(first, answers.case, total)
    np.maximum.at(last, answers.case, total)
    number = np.bincount(answers.case, minlength=len(size))
    is_whole = (number == size * (size - 1) // 2) & (first == last) & (first > 1) & (size <= MOST_RESPONSES)
    is_turned = columns.better[label_of] > columns.worse[label_of]
    label = np.where(label_of < 0, -1, is_turned.astype(np.int64))
    among = ranked_among({case: columns.judged[case] for case in np.flatnonzero(is_whole).tolist()})
    parts: list[AnsweredPrompts] = []
    for responses in np.unique(size[is_whole]).tolist():
        cases = np.flatnonzero(is_whole & (size == responses))
        # Pairs of a case are sorted by their responses, as combinations are.
        rows = np.flatnonzero(np.isin(answers.case, cases)).reshape(len(cases), -1)
        ranked = np.array([among[case] for case in cases.tolist()], np.int64)
        parts.append(AnsweredPrompts(responses, cases, answers.votes[rows], label[rows], ranked, wrong[cases] == 0))
    return parts if any(part.num_responses > 2 for part in parts) else []


def ranked_among(judged: Mapping[int, Case]) -> dict[int, list[int]]:
    """Return for each pair of each case, whose pairs people all answered, among how many responses they ranked it.

    Answers of one person to one task that order all of its responses are a ranking. Without names of tasks all answers
    to a case are one task, unless a person's answers go in a circle, which no ranking does: then all are by pair.
    """
    is_by_pair = False
    sizes: dict[int, list[int]] = {}
    unnamed: dict[int, list[int]] = {}
    for position, case in judged.items():
        place = {response.id: at for at, response in enumerate(case.responses)}
        tasks: dict[tuple[str, str | None], dict[tuple[int, int], int]] = {}
        for each in case.judgments:
            if each.kind == "human" and _is_first(each) and each.verdict in {"left", "right"}:
                low, high = sorted((place[each.left], place[each.right]))
                better = place[each.left if each.verdict == "left" else each.right]
                tasks.setdefault((each.judge, each.task), {})[low, high] = better
        among = dict.fromkeys(combinations(range(len(place)), 2), 2)
        for (_, task), winners in tasks.items():
            members = {response for pair in winners for response in pair}
            wins = Counter(winners.values())
            is_complete = len(winners) == len(members) * (len(members) - 1) // 2
            is_ranking = is_complete and sorted(wins[each] for each in members) == list(range(len(members)))
            is_by_pair |= task is None and is_complete and not is_ranking
            if is_ranking:
                among |= {pair: max(among[pair], len(members)) for pair in winners}
        sizes[position] = list(among.values())
        if any(task is None for _, task in tasks):
            unnamed[position] = [2] * len(among)
    return sizes | unnamed if is_by_pair else sizes
