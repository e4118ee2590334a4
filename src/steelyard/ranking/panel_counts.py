"""A judge next to the others of the same pairs, as counts: the entries that a batch of cases adds.

A *shared pair* has readable judgments by two judges or more. On it a judge's label (its vote, where it judged the pair
repeatedly) is compared with the label of every other judge; each comparison weighs 1 / (number of others), so that a
shared pair counts once for each of its judges.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, Integers
from steelyard.core.types import Record
from steelyard.ranking.annotation_features import Traits
from steelyard.ranking.judge_quality import RepeatedJudgments, repeated_judgments
from steelyard.ranking.judgment_table import JudgmentTable
from steelyard.statistics.agreement import NUM_CELLS, NUM_LABELS, TIED, Labels, count_labels, unique_labels, vote
from steelyard.statistics.unit_bootstrap import Entries, Group, column_slices

PANEL = column_slices(confusion=NUM_CELLS, verdicts=3, places=2)
"""The columns of a judge's label by the others' (`NUM_CELLS`), of verdicts as written (left, right, tie), and by the
order shown (first, last)."""
PANEL_WIDTH = PANEL["places"].stop
MOST_CONTRADICTIONS = 5
"""Number of contradictions of one judge that are listed."""


class Contradiction(Record, frozen=True, kw_only=True):
    """A pair on which a judge prefers ``preferred``, and most of the other judges prefer ``other``."""

    prompt: str
    language: str | None
    preferred: str
    other: str
    num_others: int
    num_against: int


class AgreementEntries(NamedTuple):
    """The mean agreement of a judge on the shared pairs of one case in one batch; all arrays have shape (entry,).

    ``judge`` and ``batch`` (or -1) are positions in ``judges`` and ``batches``; ``time`` is NaN where it is unknown.
    """

    judges: tuple[str, ...]
    batches: tuple[str, ...]
    judge: Integers
    batch: Integers
    unit: Integers
    time: Floats
    share: Floats


class PanelCounts(NamedTuple):
    """Counts of one batch of cases: ("judge", name) and ("people", name) of `PANEL_WIDTH`, and more.

    Units are the positions of the cases in the batch.
    """

    entries: Entries
    agreement_over_time: AgreementEntries
    contradictions: dict[str, tuple[Contradiction, ...]]


class _Shared(NamedTuple):
    """Labels of shared pairs, one a judge and pair, and how the other judges of the pair labelled it (label, 3)."""

    labels: Labels
    others: Integers

    @property
    def num_others(self) -> Integers:
        return self.others.sum(axis=1)


def panel_counts(table: JudgmentTable, traits: Traits) -> PanelCounts:
    """Return what the judgments of a batch say about each judge next to the others."""
    repeated = repeated_judgments(table)
    labels = unique_labels(repeated.item, table.judge[repeated.at], repeated.label)
    counts = count_labels(labels.item, labels.label, len(repeated.case))
    others = counts[labels.item]
    others[np.arange(len(others)), labels.label] -= 1
    is_shared = others.sum(axis=1) > 0
    shared = _Shared(Labels(*(column[is_shared] for column in labels)), others[is_shared])
    groups = tuple(("judge", name) for name in table.judges)
    gold = _against_people(table, repeated)
    parts = [
        _confusions(shared, repeated.case),
        *_written(table, traits, repeated, shared),
        *([] if gold is None else [_confusions(gold, repeated.case, first_group=len(groups))]),
    ]
    people: tuple[Group, ...] = () if gold is None else tuple(("people", name) for name in table.judges)
    entries = Entries(
        (*groups, *people),
        np.concatenate([part.unit for part in parts]).astype(np.int32),
        np.concatenate([part.column for part in parts]).astype(np.int32),
        np.concatenate([part.amount for part in parts]),
    )
    # A judge without a shared pair has no row.
    present, group = np.unique(entries.column // PANEL_WIDTH, return_inverse=True)
    used = tuple(entries.groups[place] for place in present.tolist())
    return PanelCounts(
        entries._replace(groups=used, column=group * PANEL_WIDTH + entries.column % PANEL_WIDTH),
        _agreement_over_time(table, traits, repeated, shared),
        _contradictions(table, traits, repeated, shared),
    )


class _Cells(NamedTuple):
    unit: Integers
    column: Integers
    amount: Floats


def _confusions(shared: _Shared, unit: Integers, *, first_group: int = 0) -> _Cells:
    """Return own label by the others' labels, each pair with a weight of 1 in all."""
    row, others_label = np.nonzero(shared.others)
    item, judge, label = (column[row] for column in shared.labels)
    column = (first_group + judge) * PANEL_WIDTH + label * NUM_LABELS + others_label
    return _Cells(unit[item], column, shared.others[row, others_label] / shared.num_others[row])


def _against_people(table: JudgmentTable, repeated: RepeatedJudgments) -> _Shared | None:
    """Return the labels of LLMs and models on pairs that people labelled, next to the vote of the people."""
    if "human" not in table.kinds or len(table.kinds) < 2:
        return None
    is_human = table.kind[repeated.at] == table.kinds.index("human")
    judge = table.judge[repeated.at]
    people = unique_labels(repeated.item[is_human], judge[is_human], repeated.label[is_human])
    votes = count_labels(people.item, people.label, len(repeated.case))
    rest = unique_labels(repeated.item[~is_human], judge[~is_human], repeated.label[~is_human])
    rest = Labels(*(column[votes[rest.item].any(axis=1)] for column in rest))
    return _Shared(rest, np.eye(NUM_LABELS, dtype=np.int64)[vote(votes[rest.item])])


def _row_of(labels: Labels, item: Integers, judge: Integers, num_judges: int) -> tuple[Integers, Integers]:
    """Return which of the judgments belong to a label, and to which row of the labels."""
    codes = labels.item * num_judges + labels.rater
    wanted = item * num_judges + judge
    place = np.minimum(np.searchsorted(codes, wanted), max(len(codes) - 1, 0))
    members = np.flatnonzero(codes[place] == wanted) if len(codes) else np.zeros(0, np.int64)
    return members, place[members] if len(codes) else members


def _written(
    table: JudgmentTable, traits: Traits, repeated: RepeatedJudgments, shared: _Shared
) -> tuple[_Cells, _Cells]:
    """Return the verdicts on shared pairs as written, and those of a known order shown by first and last place."""
    members, _ = _row_of(shared.labels, repeated.item, table.judge[repeated.at], max(1, len(table.judges)))
    at, unit = repeated.at[members], repeated.case[repeated.item[members]]
    first = table.judge[at] * PANEL_WIDTH
    verdicts = table.verdicts
    written = _Cells(unit, first + PANEL["verdicts"].start + verdicts.verdict[at], np.ones(len(at)))
    known = verdicts.is_strict[at] & (traits.num_shown[at] > 0)
    is_left_first = traits.left_place[at] < traits.right_place[at]
    is_last = (verdicts.verdict[at] == 0) != is_left_first
    shown = _Cells(unit[known], (first + PANEL["places"].start + is_last)[known], np.ones(int(known.sum())))
    return written, shown


def _agreement_over_time(
    table: JudgmentTable, traits: Traits, repeated: RepeatedJudgments, shared: _Shared
) -> AgreementEntries:
    num_judges, num_batches = max(1, len(table.judges)), len(traits.batches) + 1
    members, row = _row_of(shared.labels, repeated.item, table.judge[repeated.at], num_judges)
    at, label, case = repeated.at[members], repeated.label[members], repeated.case[repeated.item[members]]
    share = shared.others[row, label] / shared.num_others[row]
    code = (case * num_judges + table.judge[at]) * num_batches + traits.batch[at] + 1
    codes, entry = np.unique(code, return_inverse=True)
    number = np.bincount(entry, minlength=len(codes))
    return AgreementEntries(
        judges=table.judges,
        batches=traits.batches,
        judge=codes // num_batches % num_judges,
        batch=codes % num_batches - 1,
        unit=codes // num_batches // num_judges,
        time=np.bincount(entry, traits.time[at], len(codes)) / number,
        share=np.bincount(entry, share, len(codes)) / number,
    )


def _contradictions(
    table: JudgmentTable, traits: Traits, repeated: RepeatedJudgments, shared: _Shared
) -> dict[str, tuple[Contradiction, ...]]:
    """Return for each judge pairs, one a prompt, on which most others prefer the other response; most others first."""
    (item, judge, label), num_others = shared.labels, shared.num_others
    against = shared.others[np.arange(len(item)), np.where(label == TIED, 0, 1 - label)]
    chosen = np.flatnonzero((label != TIED) & (2 * against > num_others))
    chosen = chosen[np.argsort(-against[chosen], kind="stable")]
    pairs_of_judge: dict[str, list[Contradiction]] = defaultdict(list)
    seen: set[tuple[str, int]] = set()
    # The two ends of each pair, by one of its judgments.
    verdicts = table.verdicts
    end = np.zeros((len(repeated.case), 2), np.int64)
    end[repeated.item, 0] = np.minimum(verdicts.left, verdicts.right)[repeated.at]
    end[repeated.item, 1] = np.maximum(verdicts.left, verdicts.right)[repeated.at]
    num_wanted = MOST_CONTRADICTIONS * len(table.judges)
    for row in chosen.tolist():
        name, case = table.judges[judge[row]], int(repeated.case[item[row]])
        if len(pairs_of_judge[name]) == MOST_CONTRADICTIONS or (name, case) in seen:
            continue
        seen.add((name, case))
        ids = [table.cases[case].responses[place] for place in end[item[row]]]
        prompt, language = traits.keys[case]
        pairs_of_judge[name].append(
            Contradiction(
                prompt=prompt,
                language=language,
                preferred=ids[label[row]],
                other=ids[1 - label[row]],
                num_others=int(num_others[row]),
                num_against=int(against[row]),
            )
        )
        num_wanted -= 1
        if not num_wanted:
            break
    return {name: tuple(several) for name, several in pairs_of_judge.items()}
