"""Cases in batches with their scores: made by a model and written down, or read from where they were."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from steelyard.core.errors import ModelError
from steelyard.core.protocols import JudgeModel, RewardModel
from steelyard.core.types import Case, Scores
from steelyard.curation.supervised import Batch, margins
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import read_cases
from steelyard.io.run_folder import Result
from steelyard.io.score_files import read_scored
from steelyard.plugins.reward_models import scored, scored_once
from steelyard.ranking.judgment_table import Only

_CASES_A_BATCH = 256


class _CaseFile:
    """The cases of a file, read anew each time they are gone through."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[Case]:
        return read_cases(self._path)


def write_scores(model: RewardModel, cases: Path, result: Result, *, name: str, part: str = "scores") -> Path:
    """Write ``{part}.jsonl``, a line a case, in order, and say where; after a kill only what is left is scored.

    The cases are read as the model asks for them. Raises EvidenceError for no number, ModelError where requests to a
    judge failed: it keeps what was answered by itself.
    """
    out = result.path(f"{part}.jsonl")
    num_failed = 0
    with atomic_write(out) as file:
        if isinstance(model, JudgeModel):
            lines = scored(model, tuple(read_cases(cases)), name=name)
        else:
            lines = scored_once(model, _CaseFile(cases), result, name=name, part=part)
        for line in lines:
            num_failed += list(line.unscored.values()).count("failed")
            file.write(msgspec.json.encode(line) + b"\n")
        if isinstance(model, JudgeModel) and num_failed:
            found = f"{num_failed} responses have no score because requests failed"
            raise ModelError(found, do="run the same command again: what was answered is kept")
    return out


def read_batches_unscored(cases: Path, only: Only) -> Iterator[Batch]:
    """The cases as if nothing of them had a score: what the judgments alone say, before an hour of scoring."""
    read = read_cases(cases)
    while batch := list(islice(read, _CASES_A_BATCH)):
        yield margins(batch, [_without_scores(case) for case in batch], only)


def _without_scores(case: Case) -> Scores:
    none = dict.fromkeys([response.id for response in case.responses])
    return Scores(prompt=case.prompt.id, language=case.prompt.language, scores=none)


def read_batches_scored(cases: Path, scores: Path, only: Only) -> Iterator[Batch]:
    """The cases with their margins, some hundreds at a time."""
    scored = read_scored(read_cases(cases), scores)
    while batch := list(islice(scored, _CASES_A_BATCH)):
        yield margins([one.case for one in batch], [one.scores for one in batch], only)
