"""The requests and tokens that a sampling plan will take: without any reply, or from those so far."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from steelyard.core.comparison import Reply, Request
from steelyard.core.types import Case, Message, Prompt, Record
from steelyard.io.ledger import Ledger
from steelyard.judging.forecast import TokensSoFar, batch_cost, estimated_tokens
from steelyard.judging.sampling import ModelChoices, ResponseModels, known_replies, price_of, samples_of
from steelyard.judging.token_use import TokenCounts
from steelyard.responses.plan import (
    PlannedSample,
    SamplingPlan,
    later_turns,
    opening_messages,
    planned_samples,
    request_seed,
)


class ModelForecast(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The requests of one model that have no reply yet, with their tokens.

    ``num_prompts`` counts the cases that it answers. The answers of earlier turns are in the prompts of later ones, as
    long as replies are expected. ``cost`` and ``batch_cost`` are null without a price of these. ``prompt_from`` and
    ``reply_from`` say what the tokens are estimated from: by their limit, reply tokens and costs are the most that they
    can be.
    """

    num_prompts: int
    num_requests: int
    num_answered: int
    prompt_tokens: int
    reply_tokens: int
    cost: float | None
    batch_cost: float | None = None
    prompt_from: str
    reply_from: str


class SamplingForecast(NamedTuple):
    """Requests of a run of ``sample`` by model: the result of a dry run. ``num_prompts`` counts the cases."""

    num_prompts: int
    models: dict[str, ModelForecast]


class SampledSoFar(NamedTuple):
    """The models as they were built for a run, and the ledger of its replies."""

    models: ResponseModels
    ledger: Ledger

    def replies(self, case: Case, sample: PlannedSample) -> Iterator[tuple[Request, Reply]]:
        """Yield what the ledger has of a sample."""
        return known_replies(self.models, case, sample, self.ledger)


class _Turn(NamedTuple):
    """A request to come: its texts without the answers between them, which are ``num_answers``."""

    messages: tuple[Message, ...]
    num_answers: int


class _ModelRequests:
    """The requests of one model: those to come, and the tokens of those that were answered."""

    def __init__(self) -> None:
        self.num_prompts = self.num_answered = 0
        self.turns: list[_Turn] = []
        self.so_far = TokensSoFar()

    def add(self, turns: Iterable[_Turn], known: Iterable[tuple[Request, Reply]]) -> None:
        """Add a sample: its answered turns, and those to come. After a reply without a text no turn comes."""
        to_come = list(turns)
        for request, reply in known:
            self.num_answered += 1
            to_come = [] if reply.failure is not None or not (reply.text or "").strip() else to_come[1:]
            self.so_far.add(estimated_tokens(request.question.messages), reply)
        self.turns += to_come


def forecast_sampling(
    choices: ModelChoices, cases: Iterable[Case], *, seed: int, so_far: SampledSoFar | None = None
) -> SamplingForecast:
    """Forecast the requests of each model that have no reply yet. Samples that a case has are left out.

    Those are recognised by model, repeat and seed: a change of the prompt, the system prompt or the temperature is not
    noticed.
    Without replies (``so_far``) prompts are counted by their characters, and of answers only the limit is known.
    """
    requests: defaultdict[str, _ModelRequests] = defaultdict(_ModelRequests)
    num_prompts = 0
    for case in cases:
        num_prompts += 1
        present = _present(case)
        for name, samples in _by_model(choices.plan, case, present, seed=seed).items():
            turns = _turns(choices.plan, name, case.prompt)
            requests[name].num_prompts += 1
            for sample in samples:
                known = () if so_far is None else so_far.replies(case, sample)
                requests[name].add(turns, known)
    models = {model.name: _forecast(choices, model.name, requests[model.name]) for model in choices.plan.models}
    return SamplingForecast(num_prompts, models)


def _by_model(
    plan: SamplingPlan, case: Case, present: set[tuple[str, int, int | None]], *, seed: int
) -> dict[str, list[PlannedSample]]:
    samples: defaultdict[str, list[PlannedSample]] = defaultdict(list)
    for sample in planned_samples(plan, case.prompt, seed=seed):
        if (*sample, request_seed(plan, sample, case.prompt, seed=seed)) not in present:
            samples[sample.model].append(sample)
    return samples


def _present(case: Case) -> set[tuple[str, int, int | None]]:
    """Return model, repeat and seed of the samples that the case has. Other content under that key is ignored."""
    present: set[tuple[str, int, int | None]] = set()
    for response in case.responses:
        for sample in samples_of(response):
            author, repeat, seed = sample.get("author"), sample.get("repeat", 0), sample.get("seed")
            if isinstance(author, str) and isinstance(repeat, int) and isinstance(seed, int | None):
                present.add((author, repeat, seed))
    return present


def _turns(plan: SamplingPlan, name: str, prompt: Prompt) -> tuple[_Turn, ...]:
    messages = (*opening_messages(plan.model(name), prompt),)
    turns = [_Turn(messages, 0)]
    for text in later_turns(prompt):
        messages = (*messages, Message(role="user", content=text))
        turns.append(_Turn(messages, len(turns)))
    return tuple(turns)


def _forecast(choices: ModelChoices, name: str, requests: _ModelRequests) -> ModelForecast:
    model, so_far = choices.plan.model(name), requests.so_far
    number, price = len(requests.turns), price_of(model, name)
    reply = so_far.replies(number, limit=number * choices.plan.longest(model))
    texts = so_far.scale * sum(estimated_tokens(turn.messages) for turn in requests.turns)
    answers = sum(turn.num_answers for turn in requests.turns) * reply / max(number, 1)
    tokens = TokenCounts(round(texts + answers), round(reply))
    return ModelForecast(
        num_prompts=requests.num_prompts,
        num_requests=number,
        num_answered=requests.num_answered,
        prompt_tokens=tokens.prompt,
        reply_tokens=tokens.reply,
        cost=None if price is None else tokens.cost(price),
        batch_cost=batch_cost(tokens, price),
        prompt_from=f"{so_far.num_prompts} replies" if so_far.num_prompts else "characters",
        reply_from=so_far.reply_from,
    )
