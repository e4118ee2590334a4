"""The verb `score`: a reward model's number for each response of a case file."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
from steelyard.core.protocols import RewardModel
from steelyard.core.remedies import Advice, Command
from steelyard.core.types import Counts, Meta, Run, Scores
from steelyard.curation.input_checks import check_cases
from steelyard.evaluation.coverage import CoverageCounter, ScoreSummary, UnscoredResponses
from steelyard.evaluation.model_self_tests import self_tested
from steelyard.io.cases import read_case_files
from steelyard.io.data_files import case_roles, find_case_files
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import MODEL, MODEL_SETTINGS, Argument, Option, SettingOption, Verb
from steelyard.plugins.reward_models import (
    Builder,
    build_model,
    choose_model,
    forget_lines,
    judge_ledger,
    scored,
    write_scores,
)


class Config(BaseConfig, frozen=True):
    """Settings of scoring."""

    model: Meta = msgspec.field(default_factory=dict)
    """Settings of the model's kind: docs/settings.md, under models."""
    self_test: bool = True
    """Test the model on a few of the cases first."""


_DEFAULT = Config()
_NUM_RECOGNISED_BY = 16


VERB = Verb(
    "Models",
    52,
    (
        Argument("cases", "A case file, a folder of case files, or a quoted pattern."),
        MODEL,
        Option("out", "The folder for scores.jsonl and run.json."),
        *MODEL_SETTINGS,
        SettingOption("self_test", "no_self_test"),
    ),
)


def score(
    cases: Path,
    out: Path,
    config: Config = _DEFAULT,
    *,
    model: str,
    builder: Builder | None = None,
    force: bool = False,
) -> Run[ScoreSummary]:
    """Score every response of case files with a reward model.

    OUT/scores.jsonl has one line for each case: the score of each response id, or null and the reason. Before it
    scores, a model is tested on a few of the cases: batches, equal bits, packing, BOS token, last token, head, length.

    Example: `steelyard score cases.jsonl --model my-model --out scored`

    Raises EvidenceError for a score that is NaN or infinite, ModelError for a model that fails its tests, or where
    requests to a judge failed.
    """
    choice = choose_model(model, config.model)
    settings = {"kind": choice.kind, "model": choice.settings, "self_test": config.self_test}
    files = find_case_files(cases)
    inputs = {**case_roles(files), **choice.inputs()}

    def write(result: Result) -> None:
        scorer = (builder or build_model)(choice, ledger=judge_ledger(choice, result))
        _write(result, scorer, choice.name, files, is_tested=config.self_test)

    return run_stage(out, "score", Run[ScoreSummary], write, config=settings, inputs=inputs, force=force)


def score_with(
    scorer: RewardModel, name: str, cases: Path, out: Path, config: Config = _DEFAULT, *, force: bool = False
) -> Run[ScoreSummary]:
    """Write ``scores.jsonl`` as `score` does, with a model that is built already.

    It has no settings that tell it from another of its name, so its protocol and its scores of the first cases are
    recorded in their place: a finished run counts as this one only if they are equal.
    """
    files = find_case_files(cases)
    first = tuple(islice(read_case_files(files), _NUM_RECOGNISED_BY))
    known_by = {
        "protocol": scorer.protocol(),
        # Six digits: the last ones of single precision differ between processors.
        "first_scores": [
            {key: None if score is None else f"{score:.6g}" for key, score in line.scores.items()}
            for line in scored(scorer, first, name=name, quietly=True)
        ],
    }
    settings = {"kind": name, "model": known_by, "self_test": config.self_test}
    write = partial(_write, scorer=scorer, name=name, files=files, is_tested=config.self_test)
    return run_stage(out, "score", Run[ScoreSummary], write, config=settings, inputs=case_roles(files), force=force)


def _write(result: Result, scorer: RewardModel, name: str, files: Sequence[Path], *, is_tested: bool) -> None:
    read = tuple(read_case_files(files))
    if not any(case.responses for case in read):
        where = ", ".join(map(str, files[:2]))
        raise EvidenceError("no case has a response", where=where, do=Advice("sample some first: ", Command("sample")))
    self_test = self_tested(scorer, read, name=name, is_wanted=is_tested)
    coverage, reasons = CoverageCounter(), Counter[str]()

    def count(line: Scores) -> None:
        coverage.add(line)
        reasons.update(line.unscored.values())

    write_scores(scorer, read, result, name=name, count=count)
    forget_lines(result)
    noted = {"responses": coverage.num_responses, **coverage.notes()}
    noted |= {f"unscored: {reason}": number for reason, number in reasons.items()}
    result.counts = Counts(num_in=len(read), num_used=len(read), noted=noted)
    result.findings = check_cases(read, lambda case: (), reads_ties=True)
    result.summary = ScoreSummary(
        model=name,
        protocol=scorer.protocol(),
        self_test=self_test,
        num_responses=coverage.num_responses,
        coverage=coverage.report(),
        unscored=UnscoredResponses(reasons.total(), dict(sorted(reasons.items()))),
    )
