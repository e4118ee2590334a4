"""Constraints on a line of scores: for every response of its case a finite number, or null with a reason."""

import math
from collections.abc import Iterable
from typing import cast

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Scores

NO_REASON = "no reason given"
TOO_LONG = "too long"
"""The reason of a response that exceeds the model's length limit."""


def is_too_long(reason: str) -> bool:
    """Return whether the reason is the length limit, of the model or of a member of a panel."""
    return reason == TOO_LONG or reason.endswith(f": {TOO_LONG}")


def checked_scores(case: Case, line: Scores, *, by: str) -> Scores:
    """Return the line with a reason for each null. Raises EvidenceError unless it scores exactly this case.

    NaN and infinity are errors: comparisons with them would look like results.
    """
    wanted = [response.id for response in case.responses]
    if _is_complete(line, wanted):
        if list(line.scores) == wanted and (line.prompt, line.language) == case.key:
            return line
        scores = {name: line.scores[name] for name in wanted}
        return Scores(prompt=case.prompt.id, language=case.prompt.language, scores=scores)
    _refuse_misfit(case, line, wanted, by)
    reasons = {name: line.unscored.get(name, NO_REASON) for name in wanted if line.scores[name] is None}
    return Scores(
        prompt=case.prompt.id,
        language=case.prompt.language,
        scores={name: line.scores[name] for name in wanted},
        unscored=reasons,
        cut=line.cut,
    )


def _refuse_misfit(case: Case, line: Scores, wanted: list[str], by: str) -> None:
    prompt = f"prompt {case.prompt.id!r}"
    for name in wanted:
        if name not in line.scores:
            raise EvidenceError(f"{by} gives no score for response {name!r} of {prompt}")
    known = set(wanted)
    for name in (*line.scores, *line.unscored):
        if name not in known:
            raise EvidenceError(f"{by} scores response {name!r}, which {prompt} does not have")
    for name in line.cut:
        if line.scores.get(name) is None:
            raise EvidenceError(f"{by} says that it cut response {name!r} of {prompt}, which it did not score")
    for name, score in line.scores.items():
        if score is not None and not math.isfinite(score):
            raise EvidenceError(f"{by} gives {score} for response {name!r} of {prompt}", allowed="a finite number")
        if score is not None and name in line.unscored:
            raise EvidenceError(f"{by} gives response {name!r} of {prompt} a score and a reason for having none")


def _is_complete(line: Scores, wanted: list[str]) -> bool:
    """Return whether the line has just a finite number for each response, the usual case."""
    if line.unscored or line.cut or line.scores.keys() != set(wanted):
        return False
    values = line.scores.values()
    return None not in values and all(map(math.isfinite, cast("Iterable[float]", values)))
