"""The results with values of their own: of trainings, evaluations, scores and reports, and of whole pipelines."""

import html
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from steelyard.api.outcomes import Outcome
from steelyard.api.rows import Rows
from steelyard.core.errors import EvidenceError, choices
from steelyard.core.types import Run, Scores
from steelyard.evaluation.coverage import ScoreSummary
from steelyard.evaluation.measures.accuracy import Baseline, GroupResult
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.io.atomic import write_text
from steelyard.io.cases import placed_lines
from steelyard.io.rows import read_rows
from steelyard.io.run_folder import path_inside
from steelyard.stages.report import ReportSummary
from steelyard.statistics.intervals import Estimate
from steelyard.training.config import TrainingSummary


class ScoredCases(Outcome[ScoreSummary]):
    """The scores of cases. Its table has a row for each response."""

    __slots__ = ()

    @property
    def scores(self) -> tuple[Scores, ...]:
        """The scores of each case, in order."""
        path = path_inside(self._folder, "scores.jsonl")
        return tuple(line for _, line in placed_lines(path, Scores))

    @property
    def table(self) -> Rows:
        """A row for each response: its score, or the reason for having none."""
        return Rows(
            {
                "prompt": line.prompt,
                "language": line.language,
                "response": response,
                "score": score,
                "unscored": line.unscored.get(response),
            }
            for line in self.scores
            for response, score in line.scores.items()
        )


class TrainedModel(Outcome[TrainingSummary]):
    """A trained reward model in its folder, which `evaluate` and `score` take as it is. Its table is the curve."""

    __slots__ = ()

    @property
    def table(self) -> Rows:
        """The training curve: a row for each step that was recorded."""
        return Rows(row.value for row in read_rows(path_inside(self._folder, "curve.jsonl")))


class ReportPage(Outcome[ReportSummary]):
    """A report: one self-contained HTML page."""

    __slots__ = ()

    @property
    def html(self) -> str:
        """The page as HTML."""
        path = self._folder if self._folder.suffix else self._folder / "report.html"
        return path.read_text(encoding="utf-8")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file."""
        write_text(Path(path), self.html)

    def _repr_html_(self) -> str:
        source = html.escape(self.html)
        return (
            f'<iframe srcdoc="{source}" style="width: 100%; height: 70vh; border: 0" sandbox="allow-scripts"></iframe>'
        )


class ModelEvaluation(Outcome[EvaluationSummary]):
    """The evaluation of one model.

    A headline that has no value is an `Estimate` that raises EvidenceError with the reason when it is used as a number.

    >>> evaluation = sy.evaluate("longer", cases)
    >>> float(evaluation.accuracy)
    1.0
    >>> evaluation.baselines["shorter"].accuracy
    0.000 [0.000, ...] (n=40)
    """

    __slots__ = ()

    @property
    def accuracy(self) -> Estimate:
        """The share of pairs ranked right: the mean over first-tier categories. A tied score is wrong."""
        return self._reasoned(self.summary.accuracy)

    @property
    def exact_match(self) -> Estimate:
        """The share of prompts with all pairs right: the mean over first-tier categories."""
        exact = self.summary.exact_match
        return Estimate(None, None, None, 0, why="it does not apply") if exact is None else self._reasoned(exact)

    @property
    def overall(self) -> Estimate:
        """The benchmark's own headline."""
        if self.summary.overall is not None:
            return self._reasoned(self.summary.overall)
        missing = ", ".join(f"{name} ({why})" for name, why in (self.summary.missing or {}).items())
        return Estimate(None, None, None, 0, why=f"missing {missing}" if missing else "the benchmark has none")

    @property
    def by_category(self) -> Mapping[str, GroupResult[Estimate]]:
        """Accuracy and exact match of each first-tier category."""
        return self.summary.by_category

    @property
    def by_language(self) -> Mapping[str, GroupResult[Estimate]]:
        """Accuracy and exact match of each language; empty where the cases name none."""
        return self.summary.by_language or {}

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        """The baselines by name, each with the model's lead (``difference``)."""
        return self.summary.baselines

    @property
    def items(self) -> Rows:
        """A row for each case: its pairs, those that are right, exact match, scores and columns of the measures."""
        return Rows(row.value for row in read_rows(path_inside(self._folder, "items.jsonl")))

    def _reasoned(self, estimate: Estimate) -> Estimate:
        if estimate.value is not None or estimate.why is not None:
            return estimate
        kind = "score" if self.summary.outcomes is None else "verdict"
        return replace(estimate, why=f"a request failed, or more than half of the pairs have no {kind}")

    def __repr__(self) -> str:
        name = self.summary.model or "model"
        return (
            f"ModelEvaluation({name} on {self.summary.bench}: accuracy {self.accuracy}, exact match {self.exact_match})"
        )


_RESULTS: Mapping[str, type[Outcome[Any]]] = {
    "train": TrainedModel,
    "evaluate": ModelEvaluation,
    "score": ScoredCases,
    "report": ReportPage,
}
_OUTCOME: type[Outcome[Any]] = Outcome


class Pipeline(Mapping[str, Outcome[Any]]):
    """The results of a pipeline by the names of its stages: ``done["model"]`` is a `TrainedModel`.

    ``experiment`` is the result of an ablation or a sweep, else null.
    """

    __slots__ = ("_outcomes", "experiment", "folder")

    def __init__(
        self,
        runs: Mapping[str, Run],
        folder: Path,
        owners: Sequence[object] = (),
        *,
        experiment: Outcome[Any] | None = None,
    ) -> None:
        self.folder, self.experiment = folder, experiment
        self._outcomes = {
            name: _RESULTS.get(run.stage.split(".")[0], _OUTCOME)(run, folder / name, owners)
            for name, run in runs.items()
        }

    def __getitem__(self, name: str) -> Outcome[Any]:
        """Return the result of a stage. Raises EvidenceError with the nearest name for one that does not exist."""
        if name not in self._outcomes:
            raise EvidenceError(f"no stage is called {name!r}", allowed=choices(name, self._outcomes))
        return self._outcomes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._outcomes

    def __iter__(self) -> Iterator[str]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(self._outcomes)})"
