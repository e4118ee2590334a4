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
from steelyard.io.verbs import ONLY, Argument, CaseFile, Option, Verb
from steelyard.ranking.judgment_table import EVERYTHING, REPEATED, Only
from steelyard.report.rater_table import raters_as_markdown


class Config(BaseConfig, frozen=True):
    """Settings of the reliability of raters."""

    only: Only = EVERYTHING
    """The judgments that count."""


_DEFAULT = Config()


VERB = Verb(
    "Judgments",
    46,
    (
        Argument("cases", "Case files, folders or quoted patterns.", metavar="CASES"),
        Option("out", "The folder for raters.md and run.json. Default: the terminal alone."),
        ONLY,
    ),
)


def raters(
    cases: Sequence[CaseFile], out: Path | None = None, config: Config = _DEFAULT, *, force: bool = False
) -> Run[RatersSummary]:
    """Estimate how reliable each rater of cases is, people and models, from prompts that several of them judged.

    Accuracy is the probability that a strict verdict on two random responses has the right direction, with its 95%
    interval; the share of ties is estimated beside it. No truth is needed: who contradicts good raters is less
    reliable. Errors that all raters share are not seen, so that models which err alike look good together;
    ``only=["kind=human"]`` leaves them out. An estimate needs 10 answers to shared prompts, and more than half of the
    rater's: of several answers of a rater to one prompt it can use one.

    Example: `steelyard raters judged.jsonl`

    Example: `steelyard raters judged.jsonl --only kind=human --out rated`

    Raises EvidenceError where no prompt has verdicts of two raters.

    >>> rated = sy.raters(sy.simulate(num_prompts=48, seed=1).cases)
    >>> rated.summary.raters[0].accuracy.value > 0.6
    True
    >>> rated.table.columns[:3]
    ('rater', 'kinds', 'num_answers')
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
