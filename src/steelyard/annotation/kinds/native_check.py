"""Native-speaker check: people who speak a language compare chosen and rejected answers of its items, unseen which.

M-RewardBench (appendix D, Table 8) had native speakers of Indonesian and Spanish give their preference on 50 items of
each language, drawn at random, and compared it with the reference labels and with a reward model. The preference is the
paper's only question. Two more are our own: whether the texts read as a native speaker writes, and whether the item
makes sense in this language at all, which is what the paper filters English items for (Table 7).

An item has two responses and a reference: its ranking, or one listed pair. The items of a language are drawn by the
seed from the ids of the prompts, so that parallel languages get the same items. Two answers agree on each of the three
questions that they answer alike. Exported: a judgment with the other two answers in its ``meta``.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from steelyard.annotation.questions import TaskQuestion
from steelyard.annotation.task_kinds import Catalogues, Design, QuestionTasks, TaskRules, any_quality
from steelyard.annotation.wrong_answers import reverse_order
from steelyard.core.numerics import generator
from steelyard.core.types import Case

FLUENCY = ("native", "partly", "foreign")
SUITED = ("yes", "no")


def reference_of(case: Case) -> tuple[str, str] | None:
    """Return the better and the worse response of a case with two, by its ranking or its one pair; null without."""
    if len(case.responses) != 2:
        return None
    if case.ranking is not None and [len(tier) for tier in case.ranking] == [1, 1]:
        return case.ranking[0][0], case.ranking[1][0]
    if case.pairs is not None and len(case.pairs) == 1:
        return case.pairs[0].better, case.pairs[0].worse
    return None


def _both(case: Case, rules: TaskRules) -> Design | None:
    reference = reference_of(case)
    return None if reference is None else (tuple(sorted(reference)),)


def _ask(shown: Sequence[str], catalogues: Catalogues) -> tuple[TaskQuestion, ...]:
    return (
        TaskQuestion(name="better", input="comparison", responses=tuple(shown)),
        TaskQuestion(name="fluency", input="choice", choices=FLUENCY),
        TaskQuestion(name="suited", input="choice", choices=SUITED, keys=("y", "n")),
    )


def _some_of_each_language(cases: Iterable[Case], rules: TaskRules, seed: int) -> Iterable[Case]:
    every = list(cases)
    usable = [case for case in every if reference_of(case) is not None]
    # Cases without a reference are not drawn: they are left for the import to refuse, or to skip.
    others = [case for case in every if reference_of(case) is None]
    taken: Counter[str] = Counter()
    drawn: set[tuple[str, str | None]] = set()
    for case in sorted(
        usable, key=lambda case: hashlib.sha256(f"{seed} native check {case.prompt.id}".encode()).hexdigest()
    ):
        language = case.prompt.language or ""
        if taken[language] < rules.num_per_language:
            taken[language] += 1
            drawn.add(case.key)
    return [case for case in every if case.key in drawn] + others


def _latent_quality(case: Case, response: str, seed: int) -> float:
    """Return the quality of a response to simulated people, who agree with the reference on 96% of the prompts."""
    reference = reference_of(case)
    if reference is None or response not in reference:
        return any_quality(case, response, seed)
    # Shared by all languages of a prompt: positive in 96 of 100.
    difference = float(generator(seed, "latent difference", case.prompt.id).normal(0.35, 0.2))
    return float(np.clip(0.6 + (difference if response == reference[0] else -difference) / 2, 0.0, 1.0))


KIND = QuestionTasks(
    name="native_check",
    needs="2 responses, with a ranking of them or one pair",
    plan=_both,
    is_by_language=True,
    ask=_ask,
    sample=_some_of_each_language,
    spoil=lambda answer, catalogues, rng: reverse_order(answer),
    quality=_latent_quality,
    unusual={"fluency": 0.15, "suited": 0.02},
)
