"""Simulated answers to the questions of a task, to try the machinery. They are evidence of nothing.

What is perceived of a response decides comparisons, scores and the number of marks: none in a response that is
perceived as better than 0.83, and three at most. A choice has a latent value for each item, which a simulated person
takes unless an error is drawn; where a kind of tasks says how many prompts have an unusual value, these are the same
prompts in all languages.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.annotation.answers import Span, TaskAnswer
from steelyard.annotation.questions import TaskQuestion, applies
from steelyard.annotation.simulated_annotators import Noise
from steelyard.core.numerics import Floats, generator

_ERRORS = 0.06
"""The share of choices that differ from the latent one, for a person without particular care."""
_MARK_LENGTH = 6
_MOST_MARKS = 3
_TEXT = "simulated: a clearer wording of the prompt"


class SimulatedLook(NamedTuple):
    """A task as a simulated person sees it: the texts shown by response, the quality perceived of each, and errors.

    ``item`` names the item, so that what is latent in it is the same for everybody; ``care`` divides the errors.
    """

    texts: Mapping[str, str]
    perceived: Floats
    noise: Noise
    item: tuple[str, ...]
    care: float
    rng: np.random.Generator
    seed: int

    @property
    def shown(self) -> tuple[str, ...]:
        """The ids of the responses in the order shown."""
        return tuple(self.texts)


def answer_questions(
    questions: Sequence[TaskQuestion], look: SimulatedLook, unusual: Mapping[str, float]
) -> TaskAnswer:
    """Return an answer to all questions that apply, in their order.

    ``unusual`` is the share of prompts with another value than the first, by the name of a choice.
    """
    answer = TaskAnswer()
    for question in questions:
        if not applies(question, answer):
            continue
        if question.input == "choice":
            answer = _chosen(answer, question, look, unusual.get(question.name))
        else:
            answer = _ANSWERED[question.input](answer, question, look)
    return answer


def _compared(answer: TaskAnswer, question: TaskQuestion, look: SimulatedLook) -> TaskAnswer:
    first, second = question.responses
    difference = look.perceived[look.shown.index(first)] - look.perceived[look.shown.index(second)]
    if abs(difference) < look.noise.tie_band:
        return replace(answer, ranking=((first, second),))
    return replace(answer, ranking=((first,), (second,)) if difference > 0 else ((second,), (first,)))


def _chosen(answer: TaskAnswer, question: TaskQuestion, look: SimulatedLook, unusual: float | None) -> TaskAnswer:
    number = len(question.choices)

    def draw(rng: np.random.Generator) -> int:
        if unusual is None:
            # The first choices are the common ones.
            return min(int(rng.exponential(number / 3)), number - 1)
        return int(rng.integers(1, number)) if rng.random() < unusual else 0

    item = look.item if unusual is None else look.item[:1]
    place = draw(generator(look.seed, "latent choice", *item, question.name))
    if look.rng.random() < _ERRORS / look.care:
        # A person who errs calls an item unusual as seldom as others are.
        place = int(look.rng.integers(number)) if unusual is None else draw(look.rng)
    return replace(answer, entries={**answer.entries, question.name: question.choices[place]})


def _scored(answer: TaskAnswer, question: TaskQuestion, look: SimulatedLook) -> TaskAnswer:
    (response,) = question.responses
    assert question.range is not None, "a number has a range"
    low, high = question.range
    perceived = look.perceived[look.shown.index(response)]
    score = int(np.clip(np.rint(low + perceived * (high - low)), low, high))
    return replace(answer, scores={**answer.scores, response: score})


def _written(answer: TaskAnswer, question: TaskQuestion, look: SimulatedLook) -> TaskAnswer:
    return replace(answer, entries={**answer.entries, question.name: _TEXT})


def _marked(answer: TaskAnswer, question: TaskQuestion, look: SimulatedLook) -> TaskAnswer:
    (response,) = question.responses
    # The problems that the text may have, each a few characters long: the better it is, the fewer of them are there.
    text, latent = look.texts[response], generator(look.seed, "latent marks", *look.item, response)
    starts = latent.integers(0, max(1, len(text)), size=_MOST_MARKS)
    problems: list[Span] = []
    for start in starts.tolist():
        end = min(len(text), start + _MARK_LENGTH + int(latent.integers(0, 12)))
        label = question.choices[int(latent.integers(len(question.choices)))]
        severity = question.severities[int(latent.integers(len(question.severities)))] if question.severities else None
        if start < end:
            problems.append((start, end, label, severity))
    perceived = look.perceived[look.shown.index(response)]
    number = int(np.clip(np.rint(_MOST_MARKS * (1 - perceived)), 0, _MOST_MARKS))
    seen = tuple(sorted(span for span in problems[:number] if look.rng.random() > _ERRORS / look.care))
    return replace(answer, spans={**answer.spans, response: seen}) if seen else answer


_ANSWERED = {"comparison": _compared, "number": _scored, "text": _written, "marks": _marked}
