"""Everything that a training reads: cases, encoded examples, the reference of rewards, and the network to train."""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.core.types import InputFinding, prepare_records
from steelyard.io.cases import read_cases
from steelyard.io.hashing import file_hash
from steelyard.io.progress import log_detail
from steelyard.networks.conversation import Rendering, choose_template, complete_template
from steelyard.networks.devices import LOCAL, World, start_device
from steelyard.networks.loading import check_rows, load_tokenizer
from steelyard.networks.reward_network import RewardNetwork
from steelyard.training.config import Config
from steelyard.training.evidence import (
    case_findings,
    check_disjoint,
    choose_evidence,
    evidence_counts,
    log_lengths,
    log_pairs,
)
from steelyard.training.examples import EvidenceChoice, Examples, check_template, make_examples
from steelyard.training.policy_reference import answer_starts
from steelyard.training.reward_reference import ReferenceSet, all_answers, first_prompts
from steelyard.training.trained_network import load_start, prepare_network, receive_start


class TrainingInputs(NamedTuple):
    """The inputs of a training: the model and its name, the rendering, and the examples of each role.

    ``data_hash`` is that of the file of cases. ``fingerprint`` identifies the backbone before training, the base of an
    adapter; the first process alone has it. ``starts`` has the start of the answer in each of a policy's rows.
    ``findings`` are those of the cases, ``evidence`` is what is read from those that are trained on.
    """

    model: str
    cases: Path
    data_hash: str
    tokenizer: Any
    rendering: Rendering
    network: RewardNetwork
    train: Examples
    held_out: Examples | None
    held_out_file: str | None
    reference: ReferenceSet
    fingerprint: str
    starts: dict[tuple[int, ...], int]
    findings: tuple[InputFinding, ...]
    evidence: EvidenceChoice


def read_inputs(
    cases: Path,
    held_out: Path | None,
    model: str,
    config: Config,
    *,
    reward_reference: Path | None = None,
    world: World | None = None,
) -> TrainingInputs:
    """Read, encode and load everything that a training needs. Raises the errors of `train`."""
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
        loading = threads.submit(load_start, model, config) if world.is_first else Future()
        encoded = partial(make_examples, tokenizer=tokenizer, rendering=rendering)
        of_train, of_held_out = choose_evidence(config, train_cases, held_out_cases, cases=cases, held_out=held_out)
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
        log_lengths(train_examples, held_out_examples)
        log_pairs(train_examples, train_cases, config, where=cases)
        start = receive_start(loading, config, world=world)
    for examples in (train_examples, held_out_examples, reference_set):
        if examples is not None:
            check_rows([row for example in examples.examples for row in example.rows], start.network, where=model)
    names = prepare_network(start.network, config)
    log_detail(f"training {len(names)} weight tensors; {evidence_counts(train_examples)}")
    every_case = [*train_cases, *held_out_cases, *reference_cases]
    return TrainingInputs(
        model=model,
        cases=cases,
        data_hash=file_hash(cases),
        tokenizer=tokenizer,
        rendering=rendering,
        network=start.network,
        train=train_examples,
        held_out=held_out_examples,
        held_out_file=None if held_out is None else held_out.name,
        reference=reference_set,
        fingerprint=start.fingerprint,
        findings=case_findings(train_cases, held_out_cases, held_out, train_examples, config),
        starts=answer_starts(every_case, tokenizer, rendering) if config.kind == "implicit" else {},
        evidence=of_train,
    )


def _rendering_of(config: Config, tokenizer: Any, *, model: str) -> Rendering:
    strip = config.strip and config.kind == "classifier"  # every token of the template counts for a policy
    template = choose_template(tokenizer, config.chat_template, model=model)
    return Rendering(
        template=complete_template(tokenizer, template, strip=strip),
        strip=strip,
        max_length=config.max_length,
        over_length=config.over_length,
    )
