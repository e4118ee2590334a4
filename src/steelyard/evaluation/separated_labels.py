"""Labels of people and of a judge on the same prompts, each kind without the other's."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.errors import EvidenceError
from steelyard.core.remedies import ANY, CODE, FILE, Advice, Command, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Case, InputFinding
from steelyard.io.hashing import file_hash
from steelyard.io.run_folder import run_beside
from steelyard.ranking.label_origin import JUDGES, PEOPLE, OwnLabels
from steelyard.ranking.pairs import PairChoice, pairs_of


class HumanLabels:
    """The human-labelled cases by id and language. They are few, and all in memory."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._cases = {case.key: case for case in cases}
        self._num_cases = len(self._cases)
        self._ids = {case.prompt.id for case in self._cases.values()}
        self._judged_languages: dict[str, str | None] = {}

    def label(self, case: Case) -> Case | None:
        """Return a judged case with its human labels instead; None if it has none.

        Raises EvidenceError where the responses differ.
        """
        human = self._cases.pop(case.key, None)
        if human is None:
            if case.prompt.id in self._ids:
                self._judged_languages.setdefault(case.prompt.id, case.prompt.language)
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
            first = next(iter(self._cases.values())).prompt
            problem = (
                f"{len(self._cases)} of {self._num_cases} human-labelled prompts are not among the judged ones, "
                f"the first: {first.id!r}"
            )
            if first.id in self._judged_languages:
                languages = (first.language, self._judged_languages[first.id])
                names = [f"in {code!r}" if code else "without a language" for code in languages]
                again = Command("convert", (ANY,), (Remedy("language", CODE),))
                raise EvidenceError(
                    f"{problem}, which people labelled {names[0]} and the judge {names[1]}",
                    do=Advice("give the prompts of both files one language: ", again),
                )
            raise EvidenceError(
                problem,
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
    num_pairs = num_shared = num_contradicted = num_by_people = 0
    for judged_case in judged:
        num_by_people += any(judgment.kind in PEOPLE for judgment in judged_case.judgments)
        case = labels.judged.of(judged_case)
        pairs = _ends(case, choice)
        num_pairs += len(pairs)
        labelled = by_people.label(case)
        if labelled is not None:
            people = _ends(labelled, choice)
            num_shared += len(pairs & (people | _reversed(people)))
            num_contradicted += len(pairs & _reversed(people))
    by_people.check_used()
    by_judge = Command("resolve", (str(path),), (Remedy("only", ("kind=llm", "kind=model")), Remedy("out", "by_judge")))
    ranked = ("rank by the judge's own judgments: ", by_judge, "; or ") if labels.judged.num_judged else ()
    if not num_pairs:
        read_as_people = (
            f"where the judgments of people on {number_of(num_by_people, 'prompt')} are a model's, read them again: ",
            Command("convert", (ANY,), (Remedy("judge_kind", "llm"),)),
            "; or ",
        )
        raise EvidenceError(
            "the judge has no label of its own: no ranking follows from judgments of models",
            where=str(path),
            do=Advice(
                *ranked,
                *(read_as_people if num_by_people and not ranked else ()),
                "let a judge label the same prompts: ",
                Command("judge"),
            ),
        )
    if num_shared and not num_contradicted:
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


def is_ranked_by_judges(file: Path) -> bool:
    """Return whether the record beside the file says that `resolve` ranked it by judgments of LLMs and models alone."""
    run = run_beside(file)
    if run is None or run.stage != "resolve" or run.outputs.get(file.name) != file_hash(file):
        return False
    kinds = run.config["only"].get("kind")
    return bool(kinds) and set(kinds) <= set(JUDGES)
