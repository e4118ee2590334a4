"""Checks of a training before and while it runs: equal scores, first tokens, divergence, and cases without a reward.

A training that fails these would run for hours and learn nothing.
"""

from collections.abc import Iterator, Sequence
from math import isfinite, log
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from steelyard.core.errors import ModelError
from steelyard.core.remedies import CASES, ID, Advice, Command, Placeholder, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import InputFinding
from steelyard.networks.devices import LOCAL
from steelyard.networks.packing import num_shared_tokens
from steelyard.networks.reward_network import PolicyNetwork
from steelyard.networks.scorer import Scorer
from steelyard.training.batching import PlannedStep, Step, loss_inputs, pairs_in, rows_of, slots_by_prompt
from steelyard.training.config import Config
from steelyard.training.examples import Example
from steelyard.training.gradient_accumulation import objective_of
from steelyard.training.losses import LOSSES, Objective, PairBatch, Reduction, bradley_terry_loss, sums_of, weights_of

_ITERATIONS = 60
_OVERFITTED = 0.8
"""A head alone must bring the loss of one step's pairs below this share of its start."""
_NUM_SHOWN = 6
_NEARLY_ZERO = {False: 1e-4, True: 0.05}
"""Tolerance for rounding in the log-probability of a token, in float32 and under autocast in bfloat16."""
_WINDOW = 100
STEPS_JUDGED = 10
"""The last steps that `has_learned_nothing` judges."""
_LEARNED = 0.98
"""A loss below this share of what equal scores cost has learned something. A rate that is too low ends at 0.97."""
_NUM_NAMED = 3
_ROUNDING = 1e-6
_SAME_STATES = Advice(
    "check that the template writes the answer, and that ", Remedy("max_length"), " does not cut off where it differs"
)
_FEWEST_PAIRS = 4
_MOST_OF_A_STEP, _MOST_OF_FEW = 0.5, 0.9
_LARGE_MARGIN = 10.0
"""Rewards differ by so much only where the model is certain: 10 is a probability of 0.99995."""


def check_first_step(scorer: Scorer, slots: Step, examples: Sequence[Example], config: Config) -> str:
    """Check the first step before training, and return its loss in words. Raises ModelError as the checks below do."""
    if isinstance(scorer.network, PolicyNetwork):
        loss = check_policy(scorer, slots, examples, has_reference=not config.reference_free)
        return f"before the first step a pair costs {loss:.3f}"
    if config.reads_ratings:
        equal, fitted = check_ratings_head(scorer, slots, examples, objective_of(config))
        return f"rewards of 0 cost {equal:.3f}; a head alone gets one step down to {fitted:.3f}"
    equal, fitted = check_classifier(scorer, slots, examples, config.reduction)
    return f"equal scores cost {equal:.3f}; a head alone gets one step down to {fitted:.3f}"


def check_classifier(
    scorer: Scorer, slots: Step, examples: Sequence[Example], reduction: Reduction
) -> tuple[float, float]:
    """Check the first step of a classifier. The network does not change.

    With equal scores a pair costs ln 2, or softplus(margin) where it has one. Raises ModelError where the loss differs
    from that, where the network does not tell the answers apart, or where no head could order the pairs of the step.
    Returns the loss of equal scores, and that of a head fitted to the features of the step.
    """
    pairs = pairs_in(slots, examples)
    assert pairs is not None, "steps without a pair are left out of the plan"
    # Every process computes all rows, since each fits its own head.
    alone = scorer.with_network(scorer.network, world=LOCAL)
    features = alone.head_inputs([rows_of(group, examples) for group in slots_by_prompt(slots)]).double().cpu()
    equal = torch.zeros(len(features), dtype=torch.float64)
    equal_loss = float(bradley_terry_loss(equal, _in_float64(pairs), reduction))
    expected = float((softplus(pairs.margin.double()) * pairs.weight).sum() / pairs.weight.sum())
    if reduction == "pair" and abs(equal_loss - expected) > _ROUNDING * max(1.0, expected):
        raise ModelError(f"the loss of equal scores is {equal_loss:.4f}, not {expected:.4f}", do="report this")
    _check_features(features)
    _check_distinct(features, pairs)
    fitted = _fitted_loss(features, pairs)
    if fitted > _OVERFITTED * equal_loss:
        raise _inseparable(pairs, f"{equal_loss:.3f} to {fitted:.3f}")
    return equal_loss, fitted


def _inseparable(pairs: PairBatch, losses: str) -> ModelError:
    """Return the error for pairs that no head separates, with the margins or contradictions that explain it."""
    ends = list(zip(pairs.better.tolist(), pairs.worse.tolist(), strict=True))
    num_reversed, largest = len(_contradictory(ends)), float(pairs.margin.max())
    look = Command(
        "inspect", (CASES,), (Remedy("id", ID), Remedy("model", Placeholder("MODEL")), Remedy("tokens", value=True))
    )
    reason, do = "", ("look at what the model reads: ", look)
    if num_reversed:
        reason = f": {num_reversed} of {number_of(len(ends), 'pair')} {verb_for(num_reversed, 'is', 'are')} also "
        reason += "listed the other way round"
        do = ("list each pair one way: ", Command("resolve", (CASES,)), " ranks by judgments")
    elif largest > _LARGE_MARGIN:
        reason = f": rewards cannot differ by the margins of the pairs, the largest {largest:g}"
        do = ("divide the margins, or leave them out",)
    return ModelError(
        f"no linear head separates the pairs of the first step: the loss falls only from {losses}{reason}",
        do=Advice(*do, "; or ", Remedy("preflight", value=False)),
    )


def _contradictory(ends: Sequence[tuple[int, int]]) -> list[int]:
    """Return the positions of the pairs, better and worse, that are also listed the other way round."""
    listed = set(ends)
    return [place for place, (better, worse) in enumerate(ends) if (worse, better) in listed]


def check_ratings_head(
    scorer: Scorer, slots: Step, examples: Sequence[Example], objective: Objective
) -> tuple[float, float]:
    """Check the first step of a training on ratings. The network does not change.

    Raises ModelError where the network's last layer is not finite, or does not tell the responses apart whose ratings
    differ. Returns the loss of rewards of 0, and that of a head fitted to the targets of the step by least squares.
    """
    alone = scorer.with_network(scorer.network, world=LOCAL)
    features = alone.head_inputs([rows_of(group, examples) for group in slots_by_prompt(slots)]).double().cpu()
    inputs = loss_inputs(tuple(slot for group in slots_by_prompt(slots) for slot in group), examples)
    rated, target = features[inputs.ratings.response], inputs.ratings.target.double()
    _check_features(rated)
    spread = (rated - rated.mean(dim=0)).norm(dim=1).max()
    if len(target.unique()) > 1 and spread <= _ROUNDING * rated.norm(dim=1).mean():
        raise ModelError(
            f"the last hidden states of all {len(target)} rated answers of the first step are equal",
            do=_SAME_STATES,
        )
    ratings = inputs.ratings._replace(target=target, weight=inputs.ratings.weight.double())
    only = inputs._replace(ratings=ratings, pairs=PairBatch(*(column[:0] for column in inputs.pairs)))
    weights = weights_of(only, objective)
    # The least-squares head is that of least norm; the logit of a share near 0 or 1 would be infinite.
    wanted = target if LOSSES[objective.loss].rating_link == "identity" else target.clamp(0.01, 0.99).logit()
    head = torch.linalg.lstsq(rated, wanted[:, None], driver="gelsd").solution

    def mean_loss(rewards: Tensor) -> float:
        return float(sums_of(rewards, only, objective).loss) / weights.loss

    zeros, fitted = torch.zeros(len(features), dtype=torch.float64), (features @ head)[:, 0]
    return mean_loss(zeros), mean_loss(fitted)


def check_policy(scorer: Scorer, slots: Step, examples: Sequence[Example], *, has_reference: bool) -> float:
    """Return the mean loss of the first step's pairs before a policy is trained.

    Raises ModelError where a policy that is its own reference rewards an answer, or where a reward is not finite.
    """
    network: PolicyNetwork = scorer.network
    pairs = pairs_in(slots, examples)
    assert pairs is not None, "steps without a pair are left out of the plan"
    rows = [rows_of(group, examples) for group in slots_by_prompt(slots)]
    with scorer.evaluating():
        rewards = scorer.rewards(rows).double().cpu()
    if not torch.isfinite(rewards).all():
        raise ModelError(
            "the model's probabilities are not finite on the first step", do=Advice("use ", Remedy("dtype", "float32"))
        )
    largest = float(rewards.abs().max())
    bound = _NEARLY_ZERO[scorer.is_autocast] * network.beta * max(len(row) for group in rows for row in group)
    if has_reference and largest > bound:
        raise ModelError(
            f"before training a policy is its own reference, and rewards an answer by {largest:.4f} instead of 0",
            allowed=f"up to {bound:.4f}, for rounding",
            do="report this",
        )
    behind = rewards[pairs.worse] - rewards[pairs.better] + pairs.margin
    return float((softplus(behind) * pairs.weight).sum() / pairs.weight.sum())


def step_findings(
    plan: Sequence[PlannedStep], examples: Sequence[Example], reduction: Reduction
) -> Iterator[InputFinding]:
    """Yield findings for pairs listed both ways or twice, large and negative margins, and pairs heavy in their step."""
    every = [(example.name, pair) for example in examples for pair in example.pairs]
    prompts_by_check: dict[str, list[str]] = {"contradictory_pairs": [], "duplicate_pairs": [], "negative_margins": []}
    for example in examples:
        ends = [(pair.better, pair.worse) for pair in example.pairs]
        prompts_by_check["contradictory_pairs"] += [example.name] * len(_contradictory(ends))
        prompts_by_check["duplicate_pairs"] += [example.name] * (len(ends) - len(set(ends)))
        prompts_by_check["negative_margins"] += [example.name for pair in example.pairs if pair.margin < 0]
    for check, names in prompts_by_check.items():
        if names:
            prompts = tuple(dict.fromkeys(names))[:_NUM_NAMED]
            yield InputFinding(check=check, count=len(names), total=len(every), examples=prompts)
    large = [(name, pair.margin) for name, pair in every if pair.margin > _LARGE_MARGIN]
    if large:
        details = {"limit": f"{_LARGE_MARGIN:g}", "largest": f"{max(margin for _, margin in large):g}"}
        prompts = tuple(dict.fromkeys(name for name, _ in large))[:_NUM_NAMED]
        yield InputFinding(check="large_margins", count=len(large), total=len(every), details=details, examples=prompts)
    if len({(pair.weight, pair.margin) for _, pair in every}) < 2:
        return
    heavy = [name for step in plan if (name := _heaviest(step.slots, examples, reduction))]
    if heavy:
        prompts = tuple(dict.fromkeys(heavy))[:_NUM_NAMED]
        yield InputFinding(check="heavy_pairs", count=len(heavy), total=len(plan), examples=prompts)


def _heaviest(slots: Step, examples: Sequence[Example], reduction: Reduction) -> str:
    """Return the prompt of the pair that has most of a step's loss at equal scores; empty where none has."""
    pairs = pairs_in(slots, examples)
    if pairs is None or len(pairs.weight) < 2:
        return ""
    weight = pairs.weight.double()
    if reduction == "prompt":
        weight = weight / weight.new_zeros(int(pairs.prompt.max()) + 1).index_add(0, pairs.prompt, weight)[pairs.prompt]
    cost = weight * softplus(pairs.margin.double())
    place = int(cost.argmax())
    # Two or three pairs may well differ by half of their loss.
    if cost[place] <= (_MOST_OF_FEW if len(cost) < _FEWEST_PAIRS else _MOST_OF_A_STEP) * cost.sum():
        return ""
    return examples[slots[int(pairs.better[place])].prompt].name


def first_tokens(example: Example, tokenizer: Any) -> str:
    """Return the first prompt as tokens: how many all answers share, how many each has, and how the first one ends."""
    shared = num_shared_tokens(example.rows)
    tails = ", ".join(str(len(row) - shared) for row in example.rows)
    ends = " ".join(repr(tokenizer.decode([token])) for token in example.rows[0][-_NUM_SHOWN:])
    return f"the first prompt shares {shared} tokens, its answers have {tails} of their own; the first ends in {ends}"


def median_loss(losses: Sequence[float], num_steps: int) -> float:
    """Return the median of the hundred losses before the last ``num_steps``, and at least ln 2, that of equal scores.

    Once training loss is near zero, its ratio to the median carries no information.
    """
    before = losses[max(0, len(losses) - num_steps - _WINDOW) : len(losses) - num_steps]
    return max(log(2), median(before)) if before else log(2)


def has_diverged(losses: Sequence[float], *, factor: float, num_steps: int) -> bool:
    """Return whether each of the last ``num_steps`` losses exceeds ``factor`` times the earlier median.

    For 0 steps none does. The losses before them must be at least as many: a training may begin badly.
    """
    if num_steps == 0 or len(losses) < 2 * num_steps:
        return False
    bound = factor * median_loss(losses, num_steps)
    return all(loss > bound for loss in losses[-num_steps:])


def has_learned_nothing(losses: Sequence[float], num_steps: int, *, equal: float) -> bool:
    """Return whether the last ten losses of all steps are still those of equal scores.

    Earlier steps are not judged: small networks learn late.
    """
    return len(losses) == num_steps and median(losses[-STEPS_JUDGED:]) > _LEARNED * equal


def loss_error(loss: float, step: int, unscorable: Sequence[str], num_prompts: int) -> ModelError:
    """Return the error for a loss that is not finite, with the names of the ``unscorable`` cases of the step.

    Where no case alone makes it so, or every one does, the weights themselves are at fault.
    """
    problem = f"the loss is {loss} at step {step}"
    if not unscorable or len(unscorable) == num_prompts > 1:
        return ModelError(problem, do=Advice("lower ", Remedy("learning_rate"), "; the last checkpoint is unchanged"))
    names = ", ".join(unscorable[:_NUM_NAMED])
    more = f" and {len(unscorable) - _NUM_NAMED} more" if len(unscorable) > _NUM_NAMED else ""
    problem += f": no finite reward for {names}{more} (of {num_prompts} prompts in the step)"
    inspect = Command("inspect", (CASES,), (Remedy("id", ID),))
    do = Advice("look at it: ", inspect, "; take it out, or ", Remedy("dtype", "float32"))
    return ModelError(problem, do=do)


def check_finite(value: float, name: str, step: int) -> None:
    """Raise ModelError for a value of a step that is not finite."""
    if not isfinite(value):
        raise ModelError(f"the {name} is {value} at step {step}", do=Advice("lower ", Remedy("learning_rate")))


def unscorable_prompts(scorer: Scorer, slots: Step, examples: Sequence[Example]) -> list[str]:
    """Return the names of the step's prompts with a reward that is not finite, in the order of the step."""
    names: list[str] = []
    for group in slots_by_prompt(slots):
        if not torch.isfinite(scorer.rewards([rows_of(group, examples)])).all():
            prompt = group[0].prompt
            names.append(repr(examples[prompt].name or f"prompt {prompt}"))
    return names


def _check_features(features: Tensor) -> None:
    if not torch.isfinite(features).all():
        raise ModelError(
            "the model's last layer is not finite on the first step", do=Advice("use ", Remedy("dtype", "float32"))
        )


def _check_distinct(features: Tensor, pairs: PairBatch) -> None:
    distances = (features[pairs.better] - features[pairs.worse]).norm(dim=1)
    # Relative to the size of the states: equal rows differ by the rounding of float32, on processors without AVX too.
    number = int((distances <= _ROUNDING * features.norm(dim=1).mean()).sum())
    if number:
        raise ModelError(
            f"the last hidden states of both answers are equal in {number} of {len(distances)} pairs of the first step",
            do=_SAME_STATES,
        )


def _fitted_loss(features: Tensor, pairs: PairBatch) -> float:
    """Return the least loss that a linear head reaches on these pairs alone."""
    # Constant coordinates become 0 and not 0 / 0.
    scale = features.std(dim=0).clamp(min=1e-12)
    inputs = (features - features.mean(dim=0)) / scale
    weight = torch.zeros(features.shape[1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight], max_iter=_ITERATIONS, line_search_fn="strong_wolfe")
    batch = _in_float64(pairs)

    def closure() -> float:
        optimiser.zero_grad()
        loss = bradley_terry_loss(inputs @ weight, batch)
        loss.backward()
        return loss.item()

    optimiser.step(closure)
    with torch.no_grad():
        return float(bradley_terry_loss(inputs @ weight, batch))


def _in_float64(pairs: PairBatch) -> PairBatch:
    return pairs._replace(weight=pairs.weight.double(), margin=pairs.margin.double())
