"""Evaluate a model on human labels of few prompts and a judge's labels of many, with the same scores for both."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Booleans, Integers
from steelyard.core.remedies import FILE, Advice, Command, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Case, InputFinding
from steelyard.evaluation.batches import Source, evaluate_scored, join_parts
from steelyard.evaluation.bench_pairs import count_pairs, values_of
from steelyard.evaluation.labelled_prompts import Resampling, split_prompts
from steelyard.evaluation.measure import ScoredBench, measures
from steelyard.evaluation.prediction_powered import (
    PPISummary,
    PromptTables,
    summarise_few_labels,
)
from steelyard.evaluation.summary import Evaluation
from steelyard.evaluation.win_rates import CreditCounter, Credits
from steelyard.io.run_folder import Result
from steelyard.io.scored_cases import ScoredCase
from steelyard.ranking.label_origin import JUDGES, PEOPLE, OwnLabels
from steelyard.ranking.pairs import PairChoice, pairs_of
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Label, layout_of
from steelyard.statistics.pair_counts import count_unscored, statistics_table
from steelyard.statistics.prompt_means import Ratio

JUDGED = "judged_"
"""The beginning of the names of the files with scores and items by the judge's labels."""


class HumanLabels:
    """The human-labelled cases by id and language. They are few, and all in memory."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._cases = {case.key: case for case in cases}
        self._num_cases = len(self._cases)

    def label(self, case: Case) -> Case | None:
        """Return a judged case with its human labels instead; None if it has none.

        Raises EvidenceError where the responses differ.
        """
        human = self._cases.pop(case.key, None)
        if human is None:
            return None
        texts = [
            {response.id: (response.text, response.messages) for response in each.responses} for each in (case, human)
        ]
        if texts[0] != texts[1]:
            raise EvidenceError(
                f"prompt id {case.prompt.id!r} has other responses with human labels than with those of the judge",
                do="let people and the judge label the same responses under the same ids",
            )
        labels = {name: getattr(human, name) for name in ("judgments", "ratings", "ranking", "pairs")}
        return msgspec.structs.replace(case, **labels)

    def check_used(self) -> None:
        """Raise EvidenceError if a human-labelled case is not among the judged ones."""
        if self._cases:
            first = next(iter(self._cases.values())).prompt.id
            raise EvidenceError(
                f"{len(self._cases)} of {self._num_cases} human-labelled prompts are not among the judged ones, "
                f"the first: {first!r}",
                do=Advice(
                    "add them to ",
                    Remedy("judged"),
                    ": the labels of both on the same prompts show how far the judge can be trusted",
                ),
            )


class SeparatedLabels(NamedTuple):
    """The labels of people and those of the judge, each without the other's."""

    human: OwnLabels
    judged: OwnLabels

    def findings(self) -> tuple[InputFinding, ...]:
        """Return how many labels of each were made with judgments of the other, and are replaced."""
        numbers = {"labels_of_people": self.judged, "labels_of_judges": self.human}
        return tuple(
            InputFinding(check=check, count=labels.num_changed, total=labels.num_cases)
            for check, labels in numbers.items()
            if labels.num_changed
        )


def separate_labels(
    judged: Iterable[Case], human: Iterable[Case], choice: PairChoice | None, *, path: Path, is_judges_alone: bool
) -> SeparatedLabels:
    """Return the labels of each kind; both are read twice. ``is_judges_alone``: no ranking was made from people's.

    ``path`` is the file of the judge.

    Raises EvidenceError unless every human-labelled case is a judged one with the same responses, and the judge has
    labels of its own that contradict people's somewhere: a copy of people's labels would count as more of them.
    """
    labels = SeparatedLabels(
        OwnLabels(human, PEOPLE, keeps_unexplained=True), OwnLabels(judged, JUDGES, keeps_unexplained=is_judges_alone)
    )
    by_people = HumanLabels(map(labels.human.of, human))
    num_pairs = num_shared = num_contradicted = 0
    for case in map(labels.judged.of, judged):
        pairs = _ends(case, choice)
        num_pairs += len(pairs)
        labelled = by_people.label(case)
        if labelled is not None:
            people = _ends(labelled, choice)
            num_shared += len(pairs & (people | _reversed(people)))
            num_contradicted += len(pairs & _reversed(people))
    by_people.check_used()
    if not num_pairs:
        problem = "the judge has no label of its own: no ranking follows from judgments of models"
        raise EvidenceError(
            problem, where=str(path), do=Advice("let a judge label the same prompts: ", Command("judge"))
        )
    if num_shared and not num_contradicted:
        by_judge = Command(
            "resolve", (str(path),), (Remedy("only", ("kind=llm", "kind=model")), Remedy("out", "by_judge"))
        )
        ranked = ("rank by the judge's own judgments: ", by_judge, "; or ") if labels.judged.num_judged else ()
        raise EvidenceError(
            f"the judge contradicts people on none of {number_of(num_shared, 'pair')} that both label: its labels are "
            "people's, or these are too few to show how often it is wrong",
            where=str(path),
            do=Advice(
                *ranked,
                "evaluate on people's labels alone: ",
                Remedy("bench", FILE),
                " in place of ",
                Remedy("human"),
                " and ",
                Remedy("judged"),
            ),
        )
    return labels


def _ends(case: Case, choice: PairChoice | None) -> set[tuple[str, str]]:
    """Return the ids of the better and the worse response of each pair; none where ``choice`` lacks judgments."""
    if choice in ("reachable", "judged") and not case.judgments:
        return set()
    names = [response.id for response in case.responses]
    return {(names[pair.better], names[pair.worse]) for pair in pairs_of(case, choice)}


def _reversed(pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(worse, better) for better, worse in pairs}


class FewLabels(NamedTuple):
    """The evaluation on the human labels, and the values from both kinds of labels."""

    evaluation: Evaluation
    powered: PPISummary


class _Collected:
    """What is kept of the judged cases as they pass: the human-labelled ones with their scores, and win rates."""

    def __init__(self, human: Iterable[Case], labels: SeparatedLabels) -> None:
        self._labels = HumanLabels(map(labels.human.of, human))
        self._own = labels.judged.of
        self.scored: list[ScoredCase] = []
        self.is_labelled: list[bool] = []
        self.human, self.judged = CreditCounter(), CreditCounter()

    def passing(self, scored_cases: Iterable[ScoredCase]) -> Iterator[ScoredCase]:
        """Yield the cases with the judge's own labels."""
        for case, scores in scored_cases:
            by_judge = self._own(case)
            human = self._labels.label(by_judge)
            self.is_labelled.append(human is not None)
            self.judged.add(by_judge)
            if human is not None:
                self.human.add(human)
                self.scored.append(ScoredCase(human, scores))
            yield ScoredCase(by_judge, scores)
        self._labels.check_used()


def evaluate_few_labels(
    source: Source,
    human: Source,
    scored_cases: Iterable[ScoredCase],
    result: Result,
    *,
    labels: SeparatedLabels,
    width: float | None,
) -> FewLabels:
    """Evaluate the scores on both kinds of labels; ``source`` has the judged cases, ``human`` those with human labels.

    Writes ``scores.jsonl`` and ``items.jsonl`` of the human-labelled prompts, and the same of all judged prompts with
    the prefix ``judged_``. Raises EvidenceError for labels of different prompts or responses.
    """
    collected = _Collected(human.cases, labels)
    parts = evaluate_scored(source, collected.passing(scored_cases))
    judged = join_parts(source, result, parts, prefix=JUDGED)
    labelled = join_parts(human, result, evaluate_scored(human, collected.scored))
    how = Resampling(source.config.num_resamples, source.config.seed, width)
    credits_of_both = collected.human.credits(), collected.judged.credits()
    return FewLabels(labelled, ppi_summary(labelled, judged, np.array(collected.is_labelled), credits_of_both, how))


def ppi_summary(
    human: Evaluation,
    judged: Evaluation,
    is_labelled: Booleans,
    credits_of_both: tuple[Credits, Credits],
    how: Resampling,
) -> PPISummary:
    """Return the values from both kinds of labels; ``is_labelled`` has an entry for each judged case."""
    pairs = judged.bench_pairs
    by_people, by_judge = (
        prompt_tables(evaluation, won) for evaluation, won in zip((human, judged), credits_of_both, strict=True)
    )
    cells = pairs.columns.cells
    layout = layout_of([Label(unit, cell) for unit, cell in zip(pairs.units, cells, strict=True)])
    totals = resample(Items(layout, by_judge.statistics, num_resamples=0), seed=0)
    headline = human.bench.headline(totals, pairs.left_out)
    return summarise_few_labels(split_prompts(cells, pairs.units, is_labelled), by_people, by_judge, headline, how)


def prompt_tables(evaluation: Evaluation, won: Credits) -> PromptTables:
    """Return the tables of an evaluation: a row for each case, zeros for a case without a comparable pair."""
    columns = evaluation.bench_pairs.columns
    statistics = np.concatenate(
        [_statistics(evaluation, evaluation.values), evaluation.headline.unscored_wrong], axis=1
    )
    baselines = {
        name: _statistics(evaluation, values_of(columns, score)) for name, score in evaluation.baselines.items()
    }
    # The ratios of every measure by which models are compared.
    pairs, config = evaluation.bench_pairs, evaluation.config
    bench = ScoredBench(pairs.columns, evaluation.scores, evaluation.values, matched_ratio=config.matched_ratio)
    ratios: dict[str, Ratio] = {}
    for measure in measures().values():
        if measure.column_names and bench.meets(measure.needs):
            columns_of_measure = measure.columns(bench).items()
            ratios |= measure.paired({name: np.array(values, np.float64) for name, values in columns_of_measure})
    return PromptTables(statistics, baselines, ratios, won)


def _statistics(evaluation: Evaluation, values: NamedTuple) -> Integers:
    pairs = evaluation.bench_pairs
    counts = count_unscored(count_pairs(pairs.columns, values), "wrong")  # pyright: ignore[reportArgumentType]
    table = statistics_table(counts, pairs.columns.included, pairs.rule)
    return table * pairs.columns.included[:, None]
