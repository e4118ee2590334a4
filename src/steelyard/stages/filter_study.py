"""The stage `filter-study`: does distant supervision pay? The precision of filtered verdicts."""

import math
from collections import Counter
from functools import partial
from pathlib import Path

import msgspec

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.plugins import load
from steelyard.core.protocols import TrainableModel
from steelyard.core.remedies import NAME, Advice, Remedy
from steelyard.core.types import Counts, Run
from steelyard.curation.filter_study import (
    AGREES,
    CheckedVerdict,
    Config,
    FilterStudySummary,
    PrecisionStudy,
    Study,
    apply_filters,
    area_under_curve,
    fit_pairs,
    num_unlisted,
    precision_by_preference,
    precision_of_filters,
    read_study,
    verdict_margins,
)
from steelyard.io.atomic import atomic_write, write_text
from steelyard.io.cases import read_cases
from steelyard.io.lines import check_readable
from steelyard.io.progress import log
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import Argument, CaseFile, Option, SettingOption, Verb
from steelyard.plugins.reward_models import ModelChoice, build_model, choose_kind

TABLE_FILE, PLOT_FILE, VERDICTS_FILE = "filter_study.json", "filter_study.svg", "verdicts.jsonl"


VERB = Verb(
    "Judgments",
    45,
    (
        Argument("cases", "The case file, judged by people and by the judge."),
        SettingOption("judge", is_required=True),
        Option("out", "The folder for filter_study.json, filter_study.svg, verdicts.jsonl and run.json."),
        Option("model", "The supervisor, a kind that learns from people's judgments: ngram or features."),
    ),
    is_command=False,
)


def filter_study(
    cases: CaseFile, out: Path, config: Config, *, model: str = "ngram", force: bool = False
) -> Run[FilterStudySummary]:
    """Measure how precise a judge's verdicts are on your data once a reward model has filtered them.

    A reward model is trained on people's judgments and scores only prompts that it was not trained on. For each
    threshold on its margin, the study reports how many verdicts remain and how often they agree with people, compared
    with length and chance at equal coverage. Whether models trained on the filtered verdicts are more accurate is an
    ablation: `steelyard run` with a table of `human` and `llm` cases (docs/howto/ablate.md).

    Raises ConfigError for an unknown judge or a model that cannot be trained; EvidenceError without people's judgments,
    and for a filter that keeps nothing.

    >>> simulated = sy.simulate(num_prompts=48, seed=1)
    >>> judged = sy.merge(simulated.cases, simulated["llm"]).cases
    >>> study = sy.filter_study(judged, judge="simulated-llm-1")
    >>> study.summary.judge
    'simulated-llm-1'
    """
    check_settings(config)
    check_readable(cases)
    if "train" not in load("models", model).Config.__struct_fields__:
        raise _not_trainable(model)
    choice = choose_kind(model, {**config.model, "train": str(cases)})
    settings = msgspec.to_builtins(config) | {"kind": choice.kind, "model": choice.settings}
    inputs = {"cases": cases, **choice.inputs()}
    write = partial(_run, path=cases, config=config, choice=choice)
    return run_stage(out, "filter-study", Run[FilterStudySummary], write, config=settings, inputs=inputs, force=force)


def check_settings(config: Config) -> None:
    """Raises ConfigError for a setting outside its range, and without a judge."""
    if not config.judge:
        raise ConfigError(
            "no judge is named", do=Advice("say whose verdicts are to be filtered: ", Remedy("judge", NAME))
        )
    if not all(0 <= quantile < 1 for quantile in config.quantiles):
        raise ConfigError(f"quantiles={list(config.quantiles)}", allowed="0 or more, below 1: at 1 nothing stays")
    if config.max_pairs is not None and config.max_pairs < 1:
        raise ConfigError(f"max_pairs={config.max_pairs}", allowed="1 or more, or null for all")


def _run(result: Result, path: Path, config: Config, choice: ModelChoice) -> None:
    model = build_model(choice)
    if not isinstance(model, TrainableModel):
        raise _not_trainable(choice.name)
    study = read_study(tuple(read_cases(path)), config, where=str(path))
    precision = _precision(result, model, study, config, where=str(path))
    summary = FilterStudySummary(
        judge=config.judge,
        model=choice.name,
        num_prompts=int(study.prompt.max()) + 1,
        num_human_pairs=len(study.human.case),
        num_human_pairs_trained_on=int(study.trains.sum()),
        precision=precision,
    )
    result.counts = Counts(
        num_in=len(study.judged.case),
        num_used=int(study.has_key.sum()),
        dropped={"people say nothing strict of the pair": int((~study.has_key).sum())},
        noted=+Counter({"verdicts on pairs that curation left out, used here": num_unlisted(study)}),
    )
    result.summary = summary
    with atomic_write(result.path(TABLE_FILE)) as file:
        file.write(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
    write_text(result.path(PLOT_FILE), _draw(summary))


def _not_trainable(model: str) -> ConfigError:
    return ConfigError(f"the model {model!r} learns from no training cases", where="model", allowed="ngram, features")


def _precision(
    result: Result, model: TrainableModel, study: Study, config: Config, *, where: str
) -> PrecisionStudy | None:
    """Measure precision by coverage over the verdicts that people's majority can check; null where there are none."""
    if not study.has_key.any():
        log(f"people judged none of the pairs that {config.judge} judged: its precision cannot be measured")
        write_text(result.path(VERDICTS_FILE), "")
        return None
    supervisor = fit_pairs(model, study, study.human.where(study.trains))
    verdicts = verdict_margins(supervisor, study, study.has_key)
    is_right = study.is_right[study.has_key]
    filters = apply_filters(verdicts, config.quantiles)
    for name, flags in filters.items():
        if not flags.any():
            raise EvidenceError(
                f"the filter {name!r} keeps none of {len(flags)} verdicts: a coverage of zero has no precision",
                where=where,
                do=Advice("take smaller ", Remedy("quantiles"), ", or another ", Remedy("model")),
            )
    _write_verdicts(result, study, verdicts.margin.tolist())
    agrees = filters.get(AGREES, verdicts.margin > 0)
    return PrecisionStudy(
        num_verdicts=len(is_right),
        filters=precision_of_filters(verdicts, is_right, filters, seed=config.seed),
        by_preference=precision_by_preference(verdicts, is_right, agrees, seed=config.seed),
        area_under_curve=area_under_curve(verdicts, is_right, seed=config.seed),
    )


def _write_verdicts(result: Result, study: Study, margins: list[float]) -> None:
    """Write a line for each verdict that people's majority can check."""
    pairs = study.judged.where(study.has_key)
    right = study.is_right[study.has_key].tolist()
    with atomic_write(result.path(VERDICTS_FILE)) as file:
        for number, better, worse, margin, is_right in zip(*pairs, margins, right, strict=True):
            case = study.cases[number]
            line = CheckedVerdict(
                prompt=case.prompt.id,
                language=case.prompt.language,
                preferred=case.responses[better].id,
                other=case.responses[worse].id,
                margin=None if math.isnan(margin) else margin,
                is_right=is_right,
            )
            file.write(msgspec.json.encode(line) + b"\n")


def _draw(summary: FilterStudySummary) -> str:
    import vl_convert

    from steelyard.report.study_figures import filtering_figure

    return vl_convert.vegalite_to_svg(filtering_figure(summary.precision))
