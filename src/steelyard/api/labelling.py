"""From raw prompts to judgeable responses, as functions: prepare prompts, let models answer, drop broken answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from steelyard.api.calls import Call, PathText, batch_path, config_of, json_value, verb
from steelyard.api.cases import CasesLike
from steelyard.api.outcomes import Outcome
from steelyard.core.types import Run
from steelyard.judging.prompt_questions import PromptsPreview
from steelyard.judging.sampling_forecast import SamplingForecast
from steelyard.judging.sampling_summary import SamplingSummary
from steelyard.prompts.screening import PromptsSummary
from steelyard.responses.cleaning_summary import CleanPreview, CleanSummary


@verb("prompts", foresees=("dry_run",))
def prompts(
    cases: CasesLike,
    *,
    against: Sequence[CasesLike] = (),
    trained: Sequence[PathText] = (),
    taxonomy: PathText | None = None,
    human: CasesLike | None = None,
    out: PathText | None = None,
    allow_failed: bool = False,
    dry_run: bool = False,
    force: bool = False,
    **settings: Any,
) -> Outcome[PromptsSummary] | PromptsPreview:
    """Prepare raw prompts: identify languages, drop duplicates, overlap and private data, count harm, and balance.

    ``against`` are benchmarks, ``trained`` folders of trained models, whose prompts are left out. The prompts that stay
    are ``.cases``; ``manifest.jsonl`` in ``.folder`` has a line for every rule that a prompt broke.

    ``classify`` is a language model that gives prompts a category of ``taxonomy``, a TOML file, or of the built-in one;
    ``human`` are prompts with categories by people, and ``summary.classification.agreement`` compares the two. With
    ``dry_run`` no model answers and nothing is written: the result has the ``summary``, the ``counts``, ``examples`` of
    each rule, and ``forecasts`` of the requests. Raises ConfigError for settings that cannot be met, EvidenceError
    where no prompt stays, ModelError where requests failed unless ``allow_failed``, MissingPartError without
    `multilingual`.

    >>> prepared = sy.prompts(cases, near_duplicates="off", language_shares={"en": 0.5, "zh": 0.5})
    >>> prepared.summary.num_kept
    40
    >>> prepared.summary.drops
    {}
    >>> sy.prompts(cases, near_duplicates="off", dry_run=True).counts.num_used
    40
    """
    from steelyard.stages import prompts as stage

    with Call("prompts", out) as call:
        config = config_of(stage.Config, settings, where="prompts")
        files = [call.file(bench, f"against-{number}") for number, bench in enumerate(against, 1)]
        result = stage.prompts(
            call.file(cases),
            call.out,
            config,
            against=files,
            trained=tuple(map(Path, trained)),
            taxonomy=None if taxonomy is None else Path(taxonomy),
            human=call.optional_file(human, "human"),
            allow_failed=allow_failed,
            dry_run=dry_run,
            force=force,
        )
        return Outcome.of(call, result) if isinstance(result, Run) else result


@verb("sample", foresees=("dry_run",))
def sample(
    cases: CasesLike,
    *,
    plan: PathText | Mapping[str, object],
    batch: PathText | None = None,
    release_batch: str | None = None,
    any_batch_model: bool = False,
    out: PathText | None = None,
    allow_failed: bool = False,
    dry_run: bool = False,
    force: bool = False,
    **settings: Any,
) -> Outcome[SamplingSummary] | SamplingForecast:
    """Let the models of a plan answer each prompt; the responses join those of ``.cases``, with their authors.

    ``plan`` is a TOML file, the name of a shipped plan, or its tables as a dictionary. With ``out`` every reply is
    stored there: after an interruption the same call continues. ``batch``, ``release_batch`` and ``any_batch_model``
    are those of `judge`. Raises ConfigError for a plan that is wrong, WaitingError while requests wait, ModelError
    where requests failed unless ``allow_failed``, EvidenceError for a model that answers none of the prompts.

    With ``dry_run`` nothing is sent or written: the result has the requests, tokens and money of each of ``models``.

    >>> plan = {"models": [{"chat": {"kind": "recorded", "path": "replies.jsonl", "name": "a-model"}}]}
    >>> sampled = sy.sample(cases, plan=plan)
    >>> sampled.summary.models["a-model"].num_responses
    40
    >>> sy.sample(cases, plan=plan, dry_run=True).models["a-model"].num_requests
    40
    """
    from steelyard.stages import sample as stage

    with Call("sample", out) as call:
        config = config_of(stage.Config, settings, where="sample")
        path = _written_plan(call, plan) if isinstance(plan, Mapping) else Path(plan)
        result = stage.sample(
            call.file(cases),
            path,
            call.out,
            config,
            allow_failed=allow_failed,
            batch=batch_path(batch, release_batch, out),
            release_batch=release_batch,
            any_batch_model=any_batch_model,
            dry_run=dry_run,
            force=force,
        )
        return Outcome.of(call, result) if isinstance(result, Run) else result


@verb("clean", foresees=("dry_run",))
def clean(
    cases: CasesLike,
    *,
    out: PathText | None = None,
    workers: int | None = None,
    dry_run: bool = False,
    force: bool = False,
    **settings: Any,
) -> Outcome[CleanSummary] | CleanPreview:
    """Drop broken responses by rules, and mask the names by which models say what they are.

    ``actions`` and ``limits`` change single rules: ``actions={"refusal": "count"}``. The rows of ``manifest`` have
    every broken rule with its figure and limit, and masked responses as they were. With ``dry_run`` nothing is written:
    the result has the ``summary``, with examples of each rule, and the ``counts``. Raises EvidenceError where nothing
    would stay, ConfigError for an unknown rule.

    >>> answers = {"prompt": "How is bread baked?", "chosen": "Mix, wait, bake.", "rejected": "Mix, bake.<|im_end|>"}
    >>> cleaned = sy.clean([answers])
    >>> cleaned.counts.dropped
    {'template_leftover': 1}
    >>> sy.clean([answers], dry_run=True).counts.num_used
    1
    """
    from steelyard.stages import clean as stage

    with Call("clean", out) as call:
        config = config_of(stage.Config, settings, where="clean")
        result = stage.clean(call.file(cases), call.out, config, workers=workers, dry_run=dry_run, force=force)
        return Outcome.of(call, result) if isinstance(result, Run) else result


def _written_plan(call: Call, plan: Mapping[str, object]) -> Path:
    content = msgspec.json.encode(json_value(plan))
    return call.write("plan", ".json", lambda path: path.write_bytes(content))
