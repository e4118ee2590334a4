"""Evaluate a reward model: the options of `evaluate`, and the lines that it prints."""

from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.options import (
    MODEL,
    MODEL_SETTINGS,
    SettingOption,
    StageOption,
    Values,
    complete_baselines,
    complete_bench,
    in_panel,
)
from steelyard.cli.output import report_step
from steelyard.cli.verb import StageVerb
from steelyard.core.errors import ConfigError

if TYPE_CHECKING:
    pass

_MAX_PARTS, _MAX_LOWEST = 4, 2
"""The most parts of a benchmark that the answer lists, and how many of more."""


def _read_bench_kind(inputs: Values, settings: Values) -> None:
    """Split `KIND=FILE` into the kind of bench and its path. A value that is an existing path has no kind."""
    from steelyard.evaluation.benches import split_kinds

    texts_by_input = {name: [inputs[name]] for name in ("human", "judged") if name in inputs} | {
        "benches": list(inputs.get("benches") or ())
    }
    files = {
        name: split_kinds(texts, is_path=lambda text: Path(text).exists()) for name, texts in texts_by_input.items()
    }
    kinds = {kind for by_kind in files.values() for kind in by_kind}
    if len(kinds) > 1:
        problem = f"two kinds of bench at once: {', '.join(sorted(kinds))}"
        raise ConfigError(problem, do="run `steelyard evaluate` for each kind")
    if kinds:
        (settings["bench_kind"],) = kinds
    for name, by_kind in files.items():
        paths = [Path(file) for texts in by_kind.values() for file in texts]
        inputs[name] = paths if name == "benches" else paths[0]


def _parse_baselines(names: str) -> list[str]:
    return [] if names == "none" else [name.strip() for name in names.split(",")]


EVALUATE = StageVerb(
    "evaluate",
    """Evaluate a reward model, or scores made elsewhere, with intervals and next to simple baselines.

    A pair is right when the better response has the strictly greater score; a prompt is an exact match when all of its
    pairs are right. The headline is the mean over the top categories; intervals are over prompts. Before it
    scores, a model is tested on a few of the cases: batches, equal bits, packing, BOS token, last token, head, length.

    Example: `steelyard evaluate --bench test.jsonl --model my-model --out result`

    Example: `steelyard evaluate --bench cheemsbench=open.jsonl --bench cheemsbench=human.jsonl --model model --out out`

    Example: `steelyard evaluate --bench rmb=RMB_dataset --model model --out rmb`

    Example: `steelyard evaluate --human few.jsonl --judged many.jsonl --width 0.1 --model my-model --out powered`

    Example: `steelyard evaluate --bench rewardbench=filtered.parquet --scores scores.jsonl --out rewardbench`
    """,
    (
        StageOption(
            "benches",
            "[KIND=]FILE, folder or quoted pattern; repeat. Without KIND, case files. Kinds: steelyard list benches.",
            "--bench",
            complete=complete_bench,
            is_text=True,
            is_optional=True,
        ),
        StageOption("out", "The folder for run.json, items and scores."),
        MODEL,
        StageOption("scores", "Scores made elsewhere (docs/formats.md)."),
        *in_panel(
            "Baselines",
            SettingOption(
                "baselines",
                note="With commas; or none.",
                complete=complete_baselines,
                parse=_parse_baselines,
                is_text=True,
            ),
            StageOption("train_cases", "The training file: the n-gram baseline learns from it."),
        ),
        *in_panel(
            "Few human and many judge labels, instead of --bench",
            StageOption("human", "[KIND=]FILE: people's rankings of a random part of the prompts.", is_text=True),
            StageOption(
                "judged", "[KIND=]FILE: a judge's rankings of all prompts, those of --human too.", is_text=True
            ),
            SettingOption("width"),
        ),
        *in_panel("Model", *MODEL_SETTINGS, SettingOption("self_test", "--no-self-test")),
        *in_panel("Counting", *map(SettingOption, ("pairs", "metric_compat", "allow_unscored"))),
        StageOption("workers", "Processes that read --scores. Default: one a core."),
    ),
    prepare=_read_bench_kind,
    next_step=report_step("shows where it fails"),
)
