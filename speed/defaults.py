"""Learning rate, step and regulariser of a reward model, studied on real preferences with held-out prompts.

Run: python speed/defaults.py CASES.jsonl --model FOLDER --name NAME [--trainable last:2] [--rates 2e-5 1e-4]
(adds to speed/results/defaults.json; cases with one conversation are on one side of the split, drawn by ``--split``)

Every arm begins with the same weights, and with the head of its seed. The rows of ``--trainable`` arms share one pass
through the frozen layers. An arm reports held-out accuracy over pairs with a 95% interval (2,000 resamples of prompts),
the mean loss of its last quarter, and its CPU seconds without that pass. Arms of ``--pairs-a-step`` visit an answer
once for each of its pairs, in random order over all prompts, as trainers of pairs do.
"""

import argparse
import itertools
import json
import time
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import softplus
from workload import HERE, where_it_ran

from steelyard.core.numerics import generator
from steelyard.core.types import Case, Pair, Response
from steelyard.io.atomic import write_text
from steelyard.io.cases import read_cases
from steelyard.networks.adapters import put_adapter, store_frozen
from steelyard.networks.conversation import choose_rendering
from steelyard.networks.devices import LOCAL
from steelyard.networks.feature_cache import feature_cache
from steelyard.networks.loading import initialise_head, load_network, load_tokenizer
from steelyard.training.config import Config, num_last_layers
from steelyard.training.distributed import clip_gradient
from steelyard.training.examples import EvidenceChoice, make_examples
from steelyard.training.held_out import prompt_statistics_of, rewards_of
from steelyard.training.optimiser import learning_rate_factor, make_optimiser, set_rates
from steelyard.training.trained_network import adapter_of, choose_trainable
from steelyard.training.trainer import Trainer, scorer_of

RESULTS = HERE / "results" / "defaults.json"
NUM_RESAMPLES = 2000


class Arm(NamedTuple):
    """One training: what is varied."""

    by: str
    step: int
    epochs: int
    rate: float
    regulariser: float
    seed: int


def split(cases, asked):
    """Whole conversations on one side each; ``asked.train`` and ``asked.test`` count conversations."""
    conversations = sorted({case.prompt.messages for case in cases}, key=lambda messages: messages[-1].content)
    order = generator(asked.split, "split").permutation(len(conversations))
    sides = [{conversations[place] for place in part} for part in (order[: asked.train], order[-asked.test :])]
    return [[case for case in cases if case.prompt.messages in side] for side in sides]


def joined(cases):
    """Cases of one conversation as one case, each answer text once: its pairs are those of all, duplicates left out."""
    together = {}
    for case in cases:
        together.setdefault(case.prompt.messages, []).append(case)
    return [own[0] if len(own) == 1 else _one_case(own) for own in together.values()]


def _one_case(cases):
    responses, pairs = {}, set()
    for case in cases:
        texts = {response.id: response.text for response in case.responses}
        for text in texts.values():
            responses.setdefault(text, Response(id=f"r{len(responses)}", text=text))
        found = [(texts[a], texts[b]) for high, low in itertools.pairwise(case.ranking) for a in high for b in low]
        pairs |= {(responses[a].id, responses[b].id) for a, b in found if a != b}
    kept = sorted(pair for pair in pairs if pair[::-1] not in pairs)
    return Case(
        prompt=cases[0].prompt,
        responses=tuple(responses.values()),
        pairs=tuple(Pair(better=better, worse=worse) for better, worse in kept),
    )


def interval(statistics, conversations):
    """Accuracy over pairs with its 95% interval: conversations are drawn, with all of their cases."""
    unit = np.unique(conversations, return_inverse=True)[1]
    correct = np.bincount(unit, statistics.num_correct)
    pairs = np.bincount(unit, statistics.num_pairs)
    drawn = generator(0, "resamples").integers(0, len(pairs), (NUM_RESAMPLES, len(pairs)))
    shares = correct[drawn].sum(1) / pairs[drawn].sum(1)
    low, high = np.quantile(shares, [0.025, 0.975])
    return {
        "accuracy": round(float(correct.sum() / pairs.sum()), 4),
        "interval": [round(float(low), 4), round(float(high), 4)],
        "num_pairs": int(pairs.sum()),
        "num_prompts": len(pairs),
    }


def by_pairs(scorer, examples, config, arm):
    """Steps of ``arm.step`` pairs drawn from all prompts, each answer scored once a step; the losses."""
    pairs = [(place, pair) for place, one in enumerate(examples) for pair in one.pairs]
    num_steps = -(-len(pairs) // arm.step) * arm.epochs
    network = scorer.network
    trained = [weight for weight in network.parameters() if weight.requires_grad]
    optimiser, losses = make_optimiser(network, config), []
    network.train()
    for epoch in range(arm.epochs):
        order = generator(arm.seed, "pairs", epoch).permutation(len(pairs))
        for start in range(0, len(pairs), arm.step):
            chosen = [pairs[place] for place in order[start : start + arm.step]]
            needed = sorted({(place, end) for place, pair in chosen for end in pair[:2]})
            prompts = sorted({place for place, _ in needed})
            rows = [tuple(examples[place].rows[end] for own, end in needed if own == place) for place in prompts]
            scores = scorer.forward(rows)
            where = {one: number for number, one in enumerate(needed)}
            better = torch.tensor([where[place, pair.better] for place, pair in chosen])
            worse = torch.tensor([where[place, pair.worse] for place, pair in chosen])
            loss = softplus(scores[worse] - scores[better]).mean()
            (loss + arm.regulariser * scores.square().mean()).backward()
            factor = learning_rate_factor(
                len(losses), num_steps, warmup_ratio=config.warmup_ratio, schedule=config.schedule
            )
            set_rates(optimiser, factor)
            clip_gradient(trained, config.max_grad_norm, world=LOCAL)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            losses.append(loss.item())
    return losses


def by_prompts(scorer, examples, config):
    trainer = Trainer(scorer.network, examples, config)
    trainer.scorer.cache = scorer.cache
    return [line["pair_loss"] for line in trainer.run()]


def run(scorer, start, sides, config, arm):
    """One arm from the common weights on."""
    train, test, conversations = sides
    scorer.network.load_state_dict(start, strict=False)
    initialise_head(scorer.network, seed=arm.seed)
    began = time.process_time()
    losses = by_pairs(scorer, train, config, arm) if arm.by == "pairs" else by_prompts(scorer, train, config)
    seconds = time.process_time() - began
    measured = interval(prompt_statistics_of(rewards_of(scorer, test), test), conversations)
    return measured | {
        "last_loss": round(float(np.mean(losses[-max(1, len(losses) // 4) :])), 4),
        "num_steps": len(losses),
        "cpu_seconds": round(seconds, 1),
    }


def options():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("cases")
    made.add_argument("--model", required=True)
    made.add_argument("--name", required=True)
    made.add_argument("--template")
    made.add_argument("--trainable", nargs="+", default=["last:2"], help="all, last:N, head, lora")
    made.add_argument("--train", type=int, default=150)
    made.add_argument("--test", type=int, default=150)
    made.add_argument("--split", type=int, default=0)
    made.add_argument("--max-length", type=int, default=256)
    made.add_argument("--step", nargs="+", type=int, default=[8], help="prompts a step")
    made.add_argument("--pairs-a-step", nargs="*", type=int, default=[], help="arms whose steps are pairs at random")
    made.add_argument("--epochs", nargs="+", type=int, default=[2])
    made.add_argument("--rates", nargs="+", type=float, default=[1e-4])
    made.add_argument("--head-rates", nargs="*", type=float)
    made.add_argument("--regulariser", nargs="+", type=float, default=[0.1])
    made.add_argument("--seeds", nargs="+", type=int, default=[0])
    made.add_argument(
        "--one-at-a-time", action="store_true", help="vary one setting around the first value of each, not all together"
    )
    return made.parse_args()


def main():
    asked = options()
    tokenizer = load_tokenizer(asked.model)
    rendering = choose_rendering(
        tokenizer, asked.template, model=asked.model, strip=True, max_length=asked.max_length, over_length="left"
    )
    cases = split(joined([case for case in read_cases(asked.cases) if len(case.ranking or ()) > 1]), asked)
    train, test = (make_examples(own, tokenizer, rendering, EvidenceChoice(), where=asked.cases) for own in cases)
    text_of = {case.prompt.id: case.prompt.messages[-1].content for case in cases[1]}
    sides = (train.examples, test.examples, [text_of[one.name] for one in test.examples])
    network, _ = load_network(asked.model, dtype="float32")
    for place, trainable in enumerate(asked.trainable):
        study(network, trainable, sides, asked, is_first=place == 0, num_pairs=train.num_pairs)


def study(network, trainable, sides, asked, *, is_first, num_pairs):
    """All arms of one part of the network."""
    is_lora = trainable == "lora"
    base = Config(
        trainable="all" if is_lora else trainable, adapter="lora" if is_lora else None, dtype="bfloat16", epochs=2
    )
    if is_lora:
        put_adapter(network, adapter_of(base), seed=0)
    list(choose_trainable(network, num_last_layers(base.trainable)))
    if is_first:
        store_frozen(network)
    start = {name: weight.detach().clone() for name, weight in network.named_parameters() if weight.requires_grad}
    rates = {"head": asked.head_rates}.get(trainable) or asked.rates
    steps = [("prompts", step) for step in asked.step] + [("pairs", step) for step in asked.pairs_a_step]
    arms = [
        Arm(*step, epochs, rate, regulariser, seed)
        for seed, step, epochs, regulariser, rate in itertools.product(
            asked.seeds, steps, asked.epochs, asked.regulariser, rates
        )
    ]
    if asked.one_at_a_time:
        center = (*steps[0], asked.epochs[0], rates[0], asked.regulariser[0])
        arms = [arm for arm in arms if sum(value != first for value, first in zip(arm, center, strict=False)) <= 1]
    key = {
        "data": asked.name, "model": asked.model.rstrip("/").rpartition("/")[2], "trainable": trainable,
        "train_prompts": len(sides[0]), "train_pairs": num_pairs, "split": asked.split,
        "num_trained": sum(weight.numel() for weight in start.values()),
    }  # fmt: skip
    began = time.process_time()
    scorer = scorer_of(network, base)
    with feature_cache(scorer, [example.rows for example in (*sides[0], *sides[1])]):
        key["frozen_layers_cpu_seconds"] = round(time.process_time() - began, 1)
        for arm in arms:
            config = Config(
                trainable=base.trainable, adapter=base.adapter, dtype="bfloat16", epochs=arm.epochs,
                batch_size=arm.step, learning_rate=arm.rate, regulariser=arm.regulariser, seed=arm.seed,
            )  # fmt: skip
            add(key | arm._asdict() | run(scorer, start, sides, config, arm))
    network.load_state_dict(start, strict=False)


def add(row):
    """Put a row into the results, in place of one of the same arm."""
    here = where_it_ran()
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"rows": []}
    same = ("data", "model", "trainable", "train_prompts", "split", *Arm._fields)
    rows = [one for one in found["rows"] if any(one[name] != row[name] for name in same)]
    print(json.dumps(row), flush=True)
    machine = {name: here[name] for name in ("machine", "device", "versions", "load_average")}
    order = sorted([*rows, row], key=lambda one: [str(one[name]) for name in same])
    lines = ",\n".join(json.dumps(one) for one in order)
    write_text(RESULTS, f'{{"machine": {json.dumps(machine)},\n"rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
