"""Cases in batches with their scores: made by a model and written down, or read from where they were."""

from collections.abc import Iterator
from itertools import islice, tee
from pathlib import Path

import msgspec

from steelyard.core.protocols import RewardModel
from steelyard.files.atomic import written
from steelyard.files.cases import read_cases
from steelyard.files.scores import read_scored
from steelyard.files.talk import track
from steelyard.methods.curation.supervised import Batch, margins
from steelyard.methods.measures.scores import checked_scores
from steelyard.methods.ranking.evidence import Only

_CASES_A_BATCH = 256


def write_scores(model: RewardModel, cases: Path, out: Path, *, name: str) -> None:
    """A line a case, in order; the cases are read as the model asks for them. Raises EvidenceError for no number."""
    asked, kept = tee(read_cases(cases))
    with written(out) as file:
        for case, line in zip(kept, model.score(track(asked, f"scoring with {name}")), strict=True):
            file.write(msgspec.json.encode(checked_scores(case, line, by=f"the model {name!r}")) + b"\n")


def read_batches_scored(cases: Path, scores: Path, only: Only) -> Iterator[Batch]:
    """The cases with their margins, some hundreds at a time."""
    scored = read_scored(read_cases(cases), scores)
    while batch := list(islice(scored, _CASES_A_BATCH)):
        yield margins([one.case for one in batch], [one.scores for one in batch], only)
