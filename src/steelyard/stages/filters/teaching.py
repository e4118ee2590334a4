"""Models taught by chosen pairs, and their margins for other pairs."""

from collections.abc import Iterable

import msgspec
import numpy as np

from steelyard.core.arrays import Floats
from steelyard.core.protocols import TrainableModel
from steelyard.core.scores import checked_scores
from steelyard.core.types import Case, Pair
from steelyard.curation.filtering import Asked
from steelyard.curation.filtering_arms import Columns
from steelyard.stages.filters.evidence import Study


def taught_by(model: TrainableModel, study: Study, pairs: Columns) -> TrainableModel:
    """The model with these pairs and no others to learn from."""
    listed: dict[int, list[Pair]] = {}
    for number, better, worse in zip(*(column.tolist() for column in pairs), strict=True):
        names = study.cases[number].responses
        listed.setdefault(number, []).append(Pair(better=names[better].id, worse=names[worse].id))
    return model.fit(
        [
            msgspec.structs.replace(study.cases[number], ranking=None, pairs=tuple(own))
            for number, own in sorted(listed.items())
        ]
    )


def margins_by(model: TrainableModel, study: Study, pairs: Columns) -> Floats:
    """For each pair the first one's score minus the second's; NaN where a score is missing."""
    wanted = np.unique(pairs.case).tolist()
    scores = dict(zip(wanted, _scores(model, [study.cases[number] for number in wanted]), strict=True))
    return np.array(
        [scores[case][better] - scores[case][worse] for case, better, worse in zip(*pairs, strict=True)], np.float64
    )


def asked_of(model: TrainableModel, study: Study, chosen: np.ndarray) -> Asked:
    """What the model says of the chosen verdicts of the judge."""
    pairs = study.judged.where(chosen)
    return Asked(study.prompt[pairs.case], margins_by(model, study, pairs), study.longer[chosen])


def _scores(model: TrainableModel, cases: Iterable[Case]) -> list[list[float]]:
    given = list(cases)
    found = []
    for case, line in zip(given, model.score(given), strict=True):
        own = checked_scores(case, line, by="the model").scores
        values = [own[response.id] for response in case.responses]
        found.append([np.nan if value is None else value for value in values])
    return found
