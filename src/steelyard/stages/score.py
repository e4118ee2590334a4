"""The verb `score`: a reward model's number for each response of a case file."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ModelError
from steelyard.core.types import Counts, Meta, Run
from steelyard.evaluation.measures.coverage import CoverageCounter
from steelyard.evaluation.model_self_tests import self_tested
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import read_cases
from steelyard.io.ledger import LEDGER_FILE
from steelyard.io.progress import log
from steelyard.io.run_folder import read_run, result_folder
from steelyard.plugins.reward_models import build_model, choose_model, forget_lines, scored, scored_once


class Config(BaseConfig, frozen=True):
    """``model``: settings of the reward model's own Config.

    ``self_test``: the model is tested on a few of the cases before it scores them all.
    """

    model: Meta = msgspec.field(default_factory=dict)
    """Settings of the model's kind."""
    self_test: bool = True
    """Whether the model is tested on a few of the cases before it scores them all."""


_DEFAULT = Config()


def score(cases: Path, out: Path, config: Config = _DEFAULT, *, model: str, force: bool = False) -> Run:
    """Write ``scores.jsonl``, a line a case, in order. ``model`` is a trained model's folder or a kind of model.

    Raises EvidenceError for a score that is NaN or infinite, ModelError for a model that fails its tests, or where
    requests to a judge failed. A response that cannot be scored is null with its reason.
    """
    choice = choose_model(model, config.model)
    asked: dict[str, Any] = {"kind": choice.kind, "model": choice.settings, "self_test": config.self_test}
    inputs = {"cases": cases, **choice.inputs()}
    with result_folder(out, "score", config=asked, inputs=inputs, force=force) as result:
        if result.is_finished:
            log(f"{out} is finished already: equal input and settings")
            return read_run(out)
        built = build_model(choice, ledger=None if choice.jury is None else result.path(LEDGER_FILE))
        read = tuple(read_cases(cases))
        tested = self_tested(built, read, name=choice.name, is_wanted=config.self_test)
        coverage, reasons = CoverageCounter(), Counter[str]()
        with atomic_write(result.path("scores.jsonl")) as file:
            # A judge keeps every reply by itself, and a request that failed is no line to keep.
            lines = scored_once(built, read, result, name=choice.name)
            for line in lines if choice.jury is None else scored(built, read, name=choice.name):
                coverage.add(line)
                reasons.update(line.unscored.values())
                file.write(msgspec.json.encode(line) + b"\n")
        if choice.jury is not None and reasons["failed"]:
            found = f"{reasons['failed']} of {coverage.num_responses} responses have no score because requests failed"
            raise ModelError(found, do="run the same command again: what was answered is kept")
        forget_lines(result)
        noted = {"responses": coverage.num_responses, **coverage.noted()}
        noted |= {f"unscored: {reason}": number for reason, number in reasons.items()}
        result.counts = Counts(num_in=len(read), num_used=len(read), noted=noted)
        result.summary = {
            "model": choice.name,
            "protocol": built.protocol(),
            "self_test": tested,
            "num_responses": coverage.num_responses,
            "coverage": coverage.report(),
            "unscored": {"num_responses": reasons.total(), "by_reason": dict(sorted(reasons.items()))},
        }
    return read_run(out)
