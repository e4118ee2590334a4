"""One run of the study: labels, margins of a cross-fitted supervisor, precision by coverage, and what arms learn."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.plugins import load
from steelyard.core.protocols import TrainableModel
from steelyard.core.types import Counts, Run
from steelyard.curation.filtering import AGREES, by_preference, discrimination, precision_table
from steelyard.curation.filtering import filters as kept_by
from steelyard.io.atomic import atomic_write, write_text
from steelyard.io.cases import read_cases
from steelyard.io.lines import check_readable
from steelyard.io.progress import log
from steelyard.io.run_folder import Result, read_run, result_folder
from steelyard.plugins.reward_models import ModelChoice, build_model, choose_kind
from steelyard.stages.filters.downstream import downstream
from steelyard.stages.filters.evidence import Study, num_unlisted, read_study
from steelyard.stages.filters.settings import Config, check_settings
from steelyard.stages.filters.teaching import asked_of, taught_by

TABLE_FILE, PLOT_FILE, VERDICTS_FILE = "filters.json", "filters.svg", "verdicts.jsonl"


def filters(cases: Path, out: Path, config: Config, *, model: str = "ngram", force: bool = False) -> Run:
    """Write ``filters.json`` and ``filters.svg``, and ``verdicts.jsonl`` with the supervisor's margin for each verdict.

    ``model`` is a kind that can be taught (``ngram``, ``features``); it learns from the people's judgments in the
    cases. Raises ConfigError for an unknown judge or a model that cannot be taught; EvidenceError without people's
    judgments, and for a filter that keeps nothing.
    """
    check_settings(config)
    check_readable(cases)
    if "train" not in load("models", model).Config.__struct_fields__:
        raise _untaught(model)
    choice = choose_kind(model, {**config.model, "train": str(cases)})
    asked = msgspec.to_builtins(config) | {"kind": choice.kind, "model": choice.settings}
    inputs = {"cases": cases, **choice.inputs()}
    with result_folder(out, "filters", config=asked, inputs=inputs, seed=config.seed, force=force) as result:
        if result.is_finished:
            log(f"{out} is finished already: equal inputs and settings")
            return read_run(out)
        _run(result, cases, config, choice)
    return read_run(out)


def _run(result: Result, path: Path, config: Config, choice: ModelChoice) -> None:
    model = build_model(choice)
    if not isinstance(model, TrainableModel):
        raise _untaught(choice.name)
    study = read_study(tuple(read_cases(path)), config, where=str(path))
    precision = _precision(result, model, study, config, where=str(path))
    summary = {
        "judge": config.judge,
        "model": choice.name,
        "num_prompts": int(study.prompt.max()) + 1,
        "num_human_pairs": len(study.human.case),
        "num_human_pairs_trained_on": int(study.trains.sum()),
        "precision": precision,
        "downstream": downstream(model, study, config),
    }
    result.counts = Counts(
        num_in=len(study.judged.case),
        num_used=int(study.has_key.sum()),
        dropped={"people say nothing strict of the pair": int((~study.has_key).sum())},
        noted=+Counter({"verdicts on pairs that curation left out, used here": num_unlisted(study)}),
    )
    result.summary = summary
    with atomic_write(result.path(TABLE_FILE)) as file:
        file.write(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
    write_text(result.path(PLOT_FILE), _drawn(summary))


def _untaught(model: str) -> ConfigError:
    return ConfigError(f"the model {model!r} learns from no training cases", where="--model", allowed="ngram, features")


def _precision(
    result: Result, model: TrainableModel, study: Study, config: Config, *, where: str
) -> dict[str, Any] | None:
    """Precision by coverage over the verdicts whose truth people say; null where they say it of none."""
    if not study.has_key.any():
        log(f"people judged none of the pairs that {config.judge} did: how right it is cannot be measured")
        write_text(result.path(VERDICTS_FILE), "")
        return None
    supervisor = taught_by(model, study, study.human.where(study.trains))
    asked = asked_of(supervisor, study, study.has_key)
    is_right = study.is_right[study.has_key]
    kept = kept_by(asked, config.quantiles)
    for name, own in kept.items():
        if not own.any():
            raise EvidenceError(
                f"the filter {name!r} keeps none of {len(own)} verdicts: a coverage of zero has no precision",
                where=where,
                do="take smaller --set quantiles, or another --model",
            )
    _write_verdicts(result, study, asked.margin.tolist())
    agrees = kept.get(AGREES, asked.margin > 0)
    return {
        "num_verdicts": len(is_right),
        "filters": precision_table(asked, is_right, kept, seed=config.seed),
        "by_preference": by_preference(asked, is_right, agrees, seed=config.seed),
        "area_under_curve": discrimination(asked, is_right, seed=config.seed),
    }


def _write_verdicts(result: Result, study: Study, margins: list[float]) -> None:
    """A line a verdict whose truth people say."""
    pairs = study.judged.where(study.has_key)
    right = study.is_right[study.has_key].tolist()
    with atomic_write(result.path(VERDICTS_FILE)) as file:
        for number, better, worse, margin, is_right in zip(*pairs, margins, right, strict=True):
            case = study.cases[number]
            line = {
                "prompt": case.prompt.id,
                "language": case.prompt.language,
                "preferred": case.responses[better].id,
                "other": case.responses[worse].id,
                "margin": None if math.isnan(margin) else margin,
                "is_right": is_right,
            }
            file.write(msgspec.json.encode(line) + b"\n")


def _drawn(summary: dict[str, Any]) -> str:
    import vl_convert

    from steelyard.report.filtering import filtering_figure

    return vl_convert.vegalite_to_svg(filtering_figure(summary["precision"], summary["downstream"]))
