"""A verb is two source files: its command, its function, its settings and its answer are made from them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parallel_cases import parallel_cases
from steelyard.io.cases import write_cases

PACKAGE = Path(__file__).parents[2] / "src" / "steelyard"
STAGE = '''
"""The verb `lengths`: how long the responses of cases are."""

from pathlib import Path

from steelyard.core.config import Config as BaseConfig
from steelyard.core.text import length_of
from steelyard.core.types import Counts, Record, Run
from steelyard.io.cases import read_cases
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import CASES, CaseFile, Option, SettingOption, Verb


class Config(BaseConfig, frozen=True):
    """Settings of the lengths."""

    least: int = 0
    """The shortest length that counts."""


_DEFAULT = Config()


class LengthsSummary(Record, frozen=True, kw_only=True):
    """The mean length."""

    mean: float


VERB = Verb("Data", 27, (CASES, Option("out", "The folder for run.json."), SettingOption("least")))


def lengths(cases: CaseFile, out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run[LengthsSummary]:
    """Measure the mean length of responses.

    Only those of at least ``least`` characters count.

    Example: `steelyard lengths cases.jsonl --out measured`

    Raises RecordError for a broken case.
    """

    def write(result: Result) -> None:
        known = [len(each.text) for case in read_cases(cases) for each in case.responses]
        counted = [length for length in known if length >= config.least]
        result.counts = Counts(num_in=len(known), num_used=len(counted), dropped={"short": len(known) - len(counted)})
        result.summary = LengthsSummary(mean=sum(counted) / len(counted))

    return run_stage(out, "lengths", Run[LengthsSummary], write, config=config, inputs={"cases": cases}, force=force)
'''.replace("from steelyard.core.text import length_of\n", "")
VIEW = '''
"""Lengths: their mean."""

from collections.abc import Iterator

from steelyard.evaluation.tables import Sentence
from steelyard.stages_lengths import LengthsSummary
from steelyard.views.view import StageRun, View, report_step
'''
