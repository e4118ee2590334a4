"""The verb `raters`: how reliable each person or model is that judged, with intervals, without knowing the truth."""

import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from steelyard.annotation.case_answers import RatersSummary, summarise_raters
from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Counts, Run
from steelyard.io.atomic import write_text
from steelyard.io.cases import read_case_files
from steelyard.io.data_files import case_roles, find_case_files
from steelyard.io.progress import track
from steelyard.io.run_folder import Result, run_stage
from steelyard.ranking.judgment_table import EVERYTHING, REPEATED, Only
from steelyard.report.rater_table import raters_as_markdown


class Config(BaseConfig, frozen=True):
    """Settings of the reliability of raters."""

    only: Only = EVERYTHING
    """The judgments that count."""


_DEFAULT = Config()


def raters(
    cases: Sequence[Path], out: Path | None = None, config: Config = _DEFAULT, *, force: bool = False
) -> Run[RatersSummary]:
    """Return the reliability of the raters of case files; with ``out`` write it as ``raters.md`` too.

    ``cases`` may be folders and patterns, which stand for their case files (`expand_inputs`). All judgments are held in
    memory: 100,000 answers take about 20 seconds. Raises EvidenceError where no prompt has verdicts of two raters.
    """
    files = find_case_files(*cases)

    def write(result: Result) -> None:
        data = list(track(read_case_files(files), "raters (cases read)"))
        summary = summarise_raters(data, config.only.votes, where=str(files[0]))
        write_text(result.path("raters.md"), raters_as_markdown(summary))
        repeated = sum(
            sum(config.only.admits(case.judgments)) - sum(config.only.votes(case.judgments)) for case in data
        )
        noted = {REPEATED: repeated} if repeated else {}
        result.counts = Counts(num_in=len(data), num_used=len(data), noted=noted)
        result.summary = summary

    inputs = case_roles(files)
    with tempfile.TemporaryDirectory(prefix="steelyard-") if out is None else nullcontext(str(out)) as folder:
        place = Path(folder) / "raters" if out is None else out
        return run_stage(place, "raters", Run[RatersSummary], write, config=config, inputs=inputs, force=force)
