"""The requests and tokens that a sampling plan will take, before any model is loaded or asked."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from steelyard.core.types import Case, Message, Prompt, Record
from steelyard.judging.forecast import TokenRates
from steelyard.judging.sampling import ModelChoices, price_of, samples_of
from steelyard.judging.token_use import TokenCounts
from steelyard.responses.plan import SamplingPlan, later_turns, opening_messages, planned_samples, request_seed

_RATES = TokenRates()


class ModelForecast(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The requests of one model: their number, an estimate of their prompt tokens, and the most reply tokens.

    ``most_cost`` is the cost where every answer reaches its token limit, also as a part of the prompts of later turns;
    null without a price.
    """

    num_prompts: int
    num_requests: int
    prompt_tokens: int
    most_reply_tokens: int
    most_cost: float | None


class SamplingForecast(NamedTuple):
    """What a run of ``sample`` would ask, by model: the result of a dry run. ``num_prompts`` counts the cases."""

    num_prompts: int
    models: dict[str, ModelForecast]


def forecast_sampling(choices: ModelChoices, cases: Iterable[Case], *, seed: int) -> SamplingForecast:
    """Count the requests of each model, and estimate their tokens. Samples that a case has are left out.

    Those are recognised by model, repeat and seed: without the chats, which are not built, a change of the prompt, the
    system prompt or the temperature is not noticed.
    A later turn counts its own text and those before it, without the answers between them, whose length is unknown.
    """
    plan = choices.plan
    prompts: Counter[str] = Counter()
    requests: Counter[str] = Counter()
    tokens: dict[str, float] = dict.fromkeys((model.name for model in plan.models), 0.0)
    repeated: Counter[str] = Counter()
    num_prompts = 0
    for case in cases:
        num_prompts += 1
        present = _present(case)
        wanted = Counter(
            sample.model
            for sample in planned_samples(plan, case.prompt, seed=seed)
            if (*sample, request_seed(plan, sample, case.prompt, seed=seed)) not in present
        )
        for name, number in wanted.items():
            turns = _tokens_by_turn(plan, name, case.prompt)
            prompts[name] += 1
            requests[name] += number * len(turns)
            tokens[name] += number * sum(turns)
            # The answer of each turn is in the prompts of all later ones.
            repeated[name] += number * len(turns) * (len(turns) - 1) // 2
    models = {
        name: _forecast(
            choices, name, prompts[name], requests[name], round(tokens[name]), num_repeated_answers=repeated[name]
        )
        for name in (model.name for model in plan.models)
    }
    return SamplingForecast(num_prompts, models)


def _present(case: Case) -> set[tuple[str, int, int | None]]:
    """Return model, repeat and seed of the samples that the case has. Other content under that key is ignored."""
    present: set[tuple[str, int, int | None]] = set()
    for response in case.responses:
        for sample in samples_of(response):
            author, repeat, seed = sample.get("author"), sample.get("repeat", 0), sample.get("seed")
            if isinstance(author, str) and isinstance(repeat, int) and isinstance(seed, int | None):
                present.add((author, repeat, seed))
    return present


def _tokens_by_turn(plan: SamplingPlan, name: str, prompt: Prompt) -> list[float]:
    """Return the tokens of the request of each turn, by characters: no model has been loaded or asked."""
    messages = [*opening_messages(plan.model(name), prompt)]
    tokens = [_RATES.of(messages)]
    for turn in later_turns(prompt):
        messages.append(Message(role="user", content=turn))
        tokens.append(_RATES.of(messages))
    return tokens


def _forecast(
    choices: ModelChoices,
    name: str,
    num_prompts: int,
    num_requests: int,
    prompt_tokens: int,
    *,
    num_repeated_answers: int,
) -> ModelForecast:
    model = choices.plan.model(name)
    longest = choices.plan.longest(model)
    most = num_requests * longest
    price = price_of(model, name)
    most_prompt = prompt_tokens + num_repeated_answers * longest
    cost = None if price is None else TokenCounts(prompt=most_prompt, reply=most).cost(price)
    return ModelForecast(
        num_prompts=num_prompts,
        num_requests=num_requests,
        prompt_tokens=prompt_tokens,
        most_reply_tokens=most,
        most_cost=cost,
    )
