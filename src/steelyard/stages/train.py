"""The train verb: a reward model from a case file, on any Hugging Face decoder; read, train, write."""

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, InputFinding, Run, prepare_records
from steelyard.curation.input_checks import check_cases
from steelyard.curation.merge import num_rows_apart
from steelyard.io.cases import read_cases
from steelyard.io.hashing import file_hash, hashed_ahead
from steelyard.io.progress import log, log_detail
from steelyard.io.run_folder import Result, read_run
from steelyard.io.trained_on import TRAINED_ON_FILE, write_trained_on
from steelyard.io.verbs import Argument, BackboneName, CaseFile, Option, SettingOption, Verb, settings
from steelyard.networks.pretrained import collection_paused
from steelyard.ranking.pairs import UNLISTED, pairs_of
from steelyard.training.config import Config, TrainingSummary, check_settings, with_defaults

if TYPE_CHECKING:  # what needs torch is imported where it is used: settings are read without it
    from steelyard.networks.conversation import Rendering
    from steelyard.networks.devices import World
    from steelyard.networks.reward_network import RewardNetwork
    from steelyard.training.examples import EvidenceChoice, Examples
    from steelyard.training.export import TrainingInputs

_DEFAULT = Config()


VERB = Verb(
    "Models",
    51,
    (
        Argument("cases", "The case file with rankings, pairs or ratings."),
        Option("model", "A decoder: a folder, or a name on the Hub."),
        Option("out", "The folder for the trained model."),
        Option("held_out", "Cases to measure accuracy on while training."),
        Option("reward_reference", "Cases whose rewards give the stored mean and SD."),
        Option("push_to_hub", "OWNER/NAME on the Hub: upload the model there."),
        Option("public", "Make that repository public. Default: private."),
        SettingOption("allow_overlap"),
        SettingOption("seed"),
        *settings("trainable", "adapter", "dtype", "max_length", "over_length", "chat_template", panel="Model"),
        *settings(
            "learning_rate",
            "epochs",
            "batch_size",
            "warmup_ratio",
            "weight_decay",
            "loss",
            "gradient_checkpointing",
            panel="Optimisation",
        ),
    ),
    is_distributed=True,
)


def train(
    cases: CaseFile,
    out: Path,
    config: Config = _DEFAULT,
    *,
    model: BackboneName,
    held_out: CaseFile | None = None,
    reward_reference: CaseFile | None = None,
    push_to_hub: str | None = None,
    public: bool = False,
    force: bool = False,
) -> Run[TrainingSummary]:
    """Train a reward model with a scalar head on any Hugging Face decoder.

    All responses of a prompt share a step, each is forwarded once, and no pair is lost. The folder loads with
    transformers' AutoModelForSequenceClassification; `steelyard.json` in it fixes template and length for scoring.
    An interrupted run continues with the same call.

    Example: `steelyard train parts/train.jsonl --model Qwen/Qwen2.5-0.5B --out model --held-out parts/held_out.jsonl`

    An optimiser step reads ``batch_size`` whole prompts; with ``batching="packed"`` up to ``tokens_per_step`` tokens.
    ``trackers`` names what records each step (`steelyard list trackers`).

    Raises EvidenceError for cases without a pair (or a rating, where the loss reads these), over the length limit, or
    held out and trained on; ModelError for a model that cannot be used or uploaded; ConfigError for settings that
    contradict each other; OutputError where ``out`` holds what the run reads.

    >>> tiny = sy.backbone(cases, hidden_size=32, num_layers=1, vocabulary=300)
    >>> trained = sy.train(cases, model=tiny, epochs=1, learning_rate=1e-3, out="my-model")
    >>> trained.summary.num_pairs
    40
    >>> scores = sy.score(trained, cases)
    """
    is_folder = Path(model).exists()
    files = {
        "cases": cases,
        "held_out": held_out,
        "reward_reference": reward_reference,
        "model": Path(model) if is_folder else None,
    }
    inputs = {role: path for role, path in files.items() if path is not None}
    settings = msgspec.to_builtins(config) | {"model": Path(model).name if is_folder else model}
    del settings["trackers"]  # trackers change no result
    # Of many processes the first alone records the inputs.
    with hashed_ahead(inputs.values() if os.environ.get("RANK", "0") == "0" else ()):
        with collection_paused():
            from steelyard.networks.devices import best_device, default_number_type
            from steelyard.training.distributed import process_group, shared_folder
            from steelyard.training.publishing import create_repository, publish_model
        with process_group() as world:
            check_settings(config)
            if config.dtype is None:
                config = replace(config, dtype=default_number_type(best_device()))
                log_detail(f"dtype {config.dtype} (the default of this device)")
            folder = shared_folder(out, "train", config=settings, inputs=inputs, force=force, world=world)
            with folder as result:
                if push_to_hub is not None and world.is_first:
                    create_repository(push_to_hub, public=public)
                if not result.is_finished:
                    read = read_inputs(cases, held_out, model, config, reward_reference=reward_reference, world=world)
                    _train(result, read, config, world)
            if push_to_hub is not None and world.is_first:
                publish_model(out, push_to_hub)
            run = world.broadcast(read_run(out, Run[TrainingSummary]) if world.is_first else None)
    assert run is not None, "the first process has it"
    return run


def _train(result: Result, inputs: "TrainingInputs", config: Config, world: "World") -> None:
    from steelyard.networks.reward_network import PolicyNetwork
    from steelyard.training.callbacks import run_callbacks
    from steelyard.training.checkpoints import load_checkpoint, remove_checkpoint
    from steelyard.training.diagnostics import first_tokens, step_findings
    from steelyard.training.export import export
    from steelyard.training.held_out import held_out_findings, store_reference
    from steelyard.training.trainer import Trainer

    examples, held_out = inputs.train.examples, inputs.held_out.examples if inputs.held_out else ()
    num_weights = sum(weight.numel() for weight in inputs.network.parameters())
    config = with_defaults(config, num_weights=num_weights, num_prompts=len(examples))
    size = f"batch_size {config.batch_size}" if config.batching == "whole" else f"batching {config.batching}"
    pairs, ratings = inputs.train.num_pairs, inputs.train.num_ratings
    evidence = " and ".join(number_of(*each) for each in ((ratings, "rating"), (pairs, "pair")) if each[0])
    log(
        f"training ({config.trainable}, {num_weights / 1e6:,.0f} M weights): "
        f"{evidence} of "
        f"{number_of(len(examples), 'prompt')}, learning_rate {config.learning_rate:g}, {size}, epochs {config.epochs}"
    )
    trainer = Trainer(inputs.network, examples, config, held_out=held_out, scale=inputs.ratings, world=world)
    trainer.distribute()
    checkpoint = load_checkpoint(result.folder, world=world)
    reason = trainer.scorer.layout_reason
    log_detail(
        f"each answer is a padded row of its own ({reason})" if reason else "a prompt is computed once for all answers"
    )
    if isinstance(inputs.network, PolicyNetwork):
        scored = (*examples, *held_out, *inputs.reference.examples)
        store_reference(trainer.scorer, scored, inputs.starts, reference_free=config.reference_free)
    if config.preflight and checkpoint is None:
        log_detail(trainer.check())
        log_detail(first_tokens(examples[trainer.plan[0].slots[0].prompt], inputs.tokenizer))
    shown = {**result.request.config, "num_pairs": inputs.train.num_pairs, "num_prompts": len(examples)}
    with (
        trainer.cached_features() as is_cached,
        run_callbacks(trainer, result.folder, start=checkpoint, settings=shown, is_cached=is_cached) as callbacks,
    ):
        trainer.run(callbacks, start=checkpoint)
    trainer.keep_best()
    export(trainer, inputs, result)
    findings = (*inputs.findings, *step_findings(trainer.plan, examples, config.reduction))
    result.findings = (*findings, *held_out_findings(result.summary.held_out))
    remove_checkpoint(result.folder, world=world)
    if world.is_first:
        write_trained_on(result.path(TRAINED_ON_FILE), read_cases(inputs.cases), base=Path(inputs.model))


def read_inputs(
    cases: Path,
    held_out: Path | None,
    model: str,
    config: Config,
    *,
    reward_reference: Path | None = None,
    world: "World | None" = None,
) -> "TrainingInputs":
    """Read, encode and load everything that a training needs. Raises the errors of `train`."""
    from steelyard.networks.adapters import fingerprint_of
    from steelyard.networks.devices import LOCAL, start_device
    from steelyard.networks.loading import check_rows, load_tokenizer
    from steelyard.training.distributed import load_on_first
    from steelyard.training.examples import check_template, make_examples
    from steelyard.training.export import TrainingInputs
    from steelyard.training.held_out import ReferenceSet, all_answers, answer_starts, check_disjoint, first_prompts
    from steelyard.training.optimiser import prepare_network

    world, tokenizer = world or LOCAL, load_tokenizer(model)
    rendering = _rendering_of(config, tokenizer, model=model)
    train_cases = list(read_cases(cases))
    held_out_cases = [] if held_out is None else list(read_cases(held_out))
    if not config.allow_overlap:
        check_disjoint(train_cases, held_out_cases, where=str(held_out))
    check_template([*train_cases, *held_out_cases], tokenizer, rendering)
    prepare_records()
    with ThreadPoolExecutor(2, thread_name_prefix="load") as threads:
        threads.submit(start_device, world)
        # The weights are read while the answers are encoded, by the first process alone.
        loading = threads.submit(_load, model, config) if world.is_first else Future()
        encoded = partial(make_examples, tokenizer=tokenizer, rendering=rendering)
        of_train, of_held_out = _choices(config, train_cases, held_out_cases, cases=cases, held_out=held_out)
        train_examples = encoded(train_cases, choice=of_train, where=str(cases))
        encoded_held_out = partial(encoded, choice=of_held_out, where=str(held_out))
        held_out_examples = encoded_held_out(held_out_cases) if held_out_cases else None
        reference_cases = [] if reward_reference is None else list(read_cases(reward_reference))
        if reward_reference is not None:
            answers = all_answers(reference_cases, tokenizer, rendering, where=str(reward_reference))
            reference_set = ReferenceSet(reward_reference.name, file_hash(reward_reference), answers)
        elif held_out is not None and held_out_examples is not None:
            reference_set = first_prompts(held_out_examples, held_out, config.reward_reference_prompts, role="held out")
        else:
            reference_set = first_prompts(train_examples, cases, config.reward_reference_prompts, role="trained on")
        _log_lengths(train_examples, held_out_examples)
        _log_pairs(train_examples, train_cases, config, where=cases)
        network = load_on_first(partial(_loaded, loading, config), world=world)
    for examples in (train_examples, held_out_examples, reference_set):
        if examples is not None:
            check_rows([row for example in examples.examples for row in example.rows], network, where=model)
    fingerprint = fingerprint_of(network) if world.is_first else ""
    names = prepare_network(network, config)
    log_detail(f"training {len(names)} weight tensors; {_sizes(train_examples)}")
    every_case = [*train_cases, *held_out_cases, *reference_cases]
    return TrainingInputs(
        model=model,
        cases=cases,
        data_hash=file_hash(cases),
        tokenizer=tokenizer,
        rendering=rendering,
        network=network,
        train=train_examples,
        held_out=held_out_examples,
        held_out_file=None if held_out is None else held_out.name,
        reference=reference_set,
        fingerprint=fingerprint,
        findings=_findings(train_cases, held_out_cases, held_out, train_examples, config),
        starts=answer_starts(every_case, tokenizer, rendering) if config.kind == "implicit" else {},
        ratings=of_train.ratings,
    )


def _choices(
    config: Config, train_cases: Sequence[Case], held_out_cases: Sequence[Case], *, cases: Path, held_out: Path | None
) -> "tuple[EvidenceChoice, EvidenceChoice]":
    """Return what is read from the training cases, and what from the held-out ones; log the scale of ratings.

    Raises EvidenceError for ratings that cannot be trained on.
    """
    from steelyard.training.examples import EvidenceChoice
    from steelyard.training.losses import LOSSES
    from steelyard.training.ratings import check_ratings, rating_scale, scale_sentence

    loss = LOSSES[config.loss]
    if loss.rating_link is None:
        return EvidenceChoice(config.pairs, loss.reads_ties), EvidenceChoice(config.pairs, is_held_out=True)
    scale = rating_scale(
        train_cases, config.dimensions, loss.rating_link, center=config.rating_center, where=str(cases)
    )
    check_ratings(held_out_cases, scale, where=str(held_out))
    log(scale_sentence(train_cases, scale))
    of_train = EvidenceChoice(config.pairs, ratings=scale, pair_weight=config.pair_weight)
    return of_train, EvidenceChoice(config.pairs, ratings=scale, is_held_out=True)


def _sizes(examples: "Examples") -> str:
    """Return the numbers of prompts, responses, and evidence of each kind that the examples have."""
    counts = {"prompt": len(examples.examples), "response": examples.num_responses, "pair": examples.num_pairs}
    counts["rating"] = examples.num_ratings
    return ", ".join(number_of(number, noun) for noun, number in counts.items() if number)


def _findings(
    train_cases: Sequence[Case],
    held_out_cases: Sequence[Case],
    held_out: Path | None,
    examples: "Examples",
    config: Config,
) -> tuple[InputFinding, ...]:
    """Return the findings of the cases, those of the held-out ones with the name of their file."""
    from steelyard.training.losses import LOSSES

    reads_ties = LOSSES[config.loss].reads_ties
    choice = partial(pairs_of, choice=config.pairs)
    check = partial(check_cases, pairs=(lambda case: ()) if config.reads_ratings and not config.pair_weight else choice)
    findings = list(check(train_cases, reads_ties=reads_ties or config.reads_ratings))
    if reads_ties and not any(example.ties for example in examples.examples):
        details = {"loss": config.loss, "remedy": str(Remedy("loss", "bradley-terry"))}
        findings.append(InputFinding(check="no_ties", count=0, total=examples.num_pairs, details=details))
    if held_out is not None:
        others = check_cases(held_out_cases, choice, reads_ties=True)
        findings += (replace(finding, details={**finding.details, "file": held_out.name}) for finding in others)
    return tuple(findings)


def _rendering_of(config: Config, tokenizer: Any, *, model: str) -> "Rendering":
    from steelyard.networks.conversation import Rendering, choose_template, complete_template

    strip = config.strip and config.kind == "classifier"  # every token of the template counts for a policy
    template = choose_template(tokenizer, config.chat_template, model=model)
    return Rendering(
        template=complete_template(tokenizer, template, strip=strip),
        strip=strip,
        max_length=config.max_length,
        over_length=config.over_length,
    )


def _log_lengths(train: "Examples", held_out: "Examples | None") -> None:
    """Log the answers over the limit of length, where there are any."""
    for name, examples in (("", train), ("held out: ", held_out)):
        for sentence in examples.length.sentences() if examples else ():
            log(f"{name}{sentence}")


def _log_pairs(examples: "Examples", cases: Sequence[Case], config: Config, *, where: Path) -> None:
    """Log, before training, rows that could be one case, and pairs that curation left out."""
    num_rows, num_prompts = num_rows_apart(cases)
    if num_rows:
        examples.noted["rows of one prompt that are cases of their own"] += num_rows
        log(
            Advice(
                f"{num_rows:,} of {number_of(len(cases), 'case')} {verb_for(num_rows, 'is', 'are')} rows of only "
                f"{number_of(num_prompts, 'prompt')}; as one case a prompt they "
                f"train several times faster: ",
                Command("convert", (str(where), "joined.jsonl"), (Remedy("rows", "joined"),)),
            )
        )
    if added := examples.noted[UNLISTED]:
        log(
            f"pairs={config.pairs} adds {number_of(added, 'pair')} that curation left out; without it the listed "
            "ones are used"
        )


def _load(model: str, config: Config) -> "tuple[RewardNetwork, bool]":
    """Return the network of the model, and whether its head is trained; a policy needs none."""
    from steelyard.networks.loading import load_causal, load_network
    from steelyard.networks.reward_network import PolicyNetwork

    if config.kind == "implicit":
        policy = load_causal(model, dtype="float32")
        return PolicyNetwork(policy, beta=config.beta, is_mean=config.answer_reduction == "avg"), True
    return load_network(model, dtype="float32")


def _loaded(loading: "Future[tuple[RewardNetwork, bool]]", config: Config) -> "RewardNetwork":
    """Wait for the network, and give it a head where it has none. Raises the errors of loading."""
    from steelyard.networks.loading import initialise_head

    network, is_trained = loading.result()
    if not is_trained:
        log_detail("the model has no reward head: a fresh one is drawn from the seed")
        initialise_head(network, seed=config.seed)
    return network
