"""Translation quality: errors of a translation are marked with their kind and severity, then it gets 0 to 100 points.

The prompt is the source and each response a translation of it, side by side, as `steelyard convert` reads translations.
Kinds and severities are those of MQM; the number has the meaning of direct assessment: 0 nothing of the source is
left, 100 perfect. M-RewardBench compares translations by two systems and prints no scale for people, so this is the
procedure of WMT (error span annotation, Kocmi et al. 2024) and not the paper's.

Two answers agree on the number if they differ by 10 at most, and on the marks if these overlap by half, where a
character counts as shared only if both marked it as equally severe. Exported: a rating ``translation quality`` from 0
to 100 with the spans, and a rating ``mqm``, minus 5 for each major error and 1 for each minor one.
"""

from collections.abc import Sequence

import numpy as np

from steelyard.annotation.answers import Origin, TaskAnswer
from steelyard.annotation.questions import TaskQuestion
from steelyard.annotation.task_kinds import Catalogues, QuestionTasks, each_response
from steelyard.annotation.wrong_answers import mirror_quality
from steelyard.core.numerics import generator
from steelyard.core.types import Case, Rating

ERRORS = (
    "Accuracy/Mistranslation", "Accuracy/Omission", "Accuracy/Addition", "Accuracy/Untranslated text",
    "Fluency/Grammar", "Fluency/Spelling", "Terminology", "Style/Awkward", "Other",
)  # fmt: skip
SEVERITIES = {"major": 5.0, "minor": 1.0}
"""The severities with their weights in the score of MQM (Freitag et al. 2021)."""
_RANGE = (0, 100)
_SCALE = (float(_RANGE[0]), float(_RANGE[1]))
_TOLERANCE = 10
_HARD_SHARE = 0.02


def _ask(shown: Sequence[str], catalogues: Catalogues) -> tuple[TaskQuestion, ...]:
    return (
        TaskQuestion(
            name="errors", input="marks", responses=tuple(shown), choices=ERRORS, severities=tuple(SEVERITIES)
        ),
        TaskQuestion(name="quality", input="number", responses=tuple(shown), range=_RANGE),
    )


def _rate(answer: TaskAnswer, origin: Origin) -> tuple[Rating, ...]:
    (response,) = origin.shown
    spans = answer.spans.get(response, ())
    penalty = sum(SEVERITIES[severity or ""] for _, _, _, severity in spans)
    scales = {"translation quality": (answer.scores[response], _SCALE), "mqm": (0.0 - penalty, None)}
    return tuple(
        origin.rating(response, dimension, value, scale=scale, spans=spans, part=f":{dimension}")
        for dimension, (value, scale) in scales.items()
    )


def _latent_quality(case: Case, response: str, seed: int) -> float:
    """Return the quality of a translation to simulated people: mostly 0.8 to 1, and less where damage was found.

    An item is as hard to translate into one language as into another: one in 50 has 0.45 in all of them.
    """
    item = str((case.prompt.meta or {}).get("item", case.prompt.id))
    of_item = generator(seed, "latent translation", item)
    usual = 0.45 if of_item.random() < _HARD_SHARE else float(of_item.uniform(0.85, 0.95))
    deviation = generator(seed, "latent quality", case.prompt.id, response).normal(0.0, 0.04)
    damage = 0.35 if (case.meta or {}).get("findings") else 0.0
    return float(np.clip(usual + deviation - damage, 0.0, 1.0))


KIND = QuestionTasks(
    name="translation_quality",
    needs="a source as the prompt, and a translation or more",
    plan=each_response,
    is_by_language=True,
    ask=_ask,
    tolerance=_TOLERANCE,
    rate=_rate,
    spoil=lambda answer, catalogues, rng: mirror_quality(answer),
    quality=_latent_quality,
)
