"""The requests and tokens that a sampling plan will take: without any reply, or from those so far."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from steelyard.core.comparison import Reply, Request
from steelyard.core.types import Case, Message, Prompt, Record
from steelyard.io.ledger import Ledger
from steelyard.judging.expected_tokens import (
    CostRange,
    Counted,
    TokenRange,
    at_least_as_wide,
    expected_batch_cost,
    expected_cost,
    expected_total,
)
from steelyard.judging.forecast import RATES_PRECISION, CountedRequest, TokenRates, held_out_counts
from steelyard.judging.sampling import ModelChoices, ResponseModels, known_replies, price_of, samples_of
from steelyard.responses.plan import (
    PlannedSample,
    SamplingPlan,
    later_turns,
    opening_messages,
    planned_samples,
    request_seed,
)
from steelyard.statistics.groups import PromptUnits


class ModelForecast(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The requests of one model that have no reply yet, with their tokens.

    ``num_prompts`` counts the cases that it answers. The answers of earlier turns are in the prompts of later ones: as
    long as expected, at least one token, at most the token limit. ``cost`` and ``batch_cost`` are null without a price
    of these. ``prompt_from`` and ``reply_from`` say what the tokens are estimated from.
    """

    num_prompts: int
    num_requests: int
    num_answered: int
    prompt_tokens: TokenRange
    reply_tokens: TokenRange
    cost: CostRange | None
    batch_cost: CostRange | None = None
    prompt_from: str
    reply_from: str


class SamplingForecast(NamedTuple):
    """What a run of ``sample`` would ask, by model: the result of a dry run. ``num_prompts`` counts the cases."""

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
        self.prompts: list[CountedRequest] = []
        self.replies: list[Counted] = []

    def add(self, unit: str, turns: Iterable[_Turn], known: Iterable[tuple[Request, Reply]]) -> None:
        """Add a sample: its answered turns, and those to come. After a reply without a text no turn comes."""
        to_come = list(turns)
        for request, reply in known:
            self.num_answered += 1
            to_come = [] if reply.failure is not None or not (reply.text or "").strip() else to_come[1:]
            if reply.prompt_tokens is not None:
                self.prompts.append(CountedRequest(unit, request.question.messages, reply.prompt_tokens))
            if reply.reply_tokens is not None:
                self.replies.append(Counted(unit, 1.0, reply.reply_tokens))
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
    units, num_prompts = PromptUnits(), 0
    for case in cases:
        num_prompts += 1
        unit = str(units.unit(case.prompt))
        present = _present(case)
        for name, samples in _by_model(choices.plan, case, present, seed=seed).items():
            turns = _turns(choices.plan, name, case.prompt)
            requests[name].num_prompts += 1
            for sample in samples:
                known = () if so_far is None else so_far.replies(case, sample)
                requests[name].add(unit, turns, known)
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
    model = choices.plan.model(name)
    longest, number = choices.plan.longest(model), len(requests.turns)
    reply = expected_total(requests.replies, number, low=number, high=number * longest)
    prompt = _prompt_range(requests, reply, longest)
    return ModelForecast(
        num_prompts=requests.num_prompts,
        num_requests=number,
        num_answered=requests.num_answered,
        prompt_tokens=prompt,
        reply_tokens=reply,
        cost=expected_cost(prompt, reply, price_of(model, name)),
        batch_cost=expected_batch_cost(prompt, reply, price_of(model, name)),
        prompt_from=f"{len(requests.prompts)} replies" if requests.prompts else "characters",
        reply_from=f"{len(requests.replies)} replies" if requests.replies else "their limit",
    )


def _prompt_range(requests: _ModelRequests, reply: TokenRange, longest: int) -> TokenRange:
    """Return the tokens of the texts, by the counts so far or by the table, with those of the answers among them."""
    rates, counted = held_out_counts(requests.prompts)
    texts = sum(rates.of(turn.messages) for turn in requests.turns)
    if counted:
        of_texts = at_least_as_wide(expected_total(counted, texts, low=texts / 2, high=2 * texts), RATES_PRECISION)
    else:
        ends = [TokenRates().ends(turn.messages) for turn in requests.turns]
        of_texts = TokenRange(
            expected=round(texts), low=round(sum(least for least, _ in ends)), high=round(sum(most for _, most in ends))
        )
    num_answers = sum(turn.num_answers for turn in requests.turns)
    if not num_answers:
        return of_texts
    number = len(requests.turns)
    mean = None if reply.expected is None else reply.expected / number
    return TokenRange(
        expected=None if mean is None or of_texts.expected is None else of_texts.expected + round(num_answers * mean),
        low=of_texts.low + round(num_answers * (reply.low / number)),
        high=of_texts.high + num_answers * (longest if mean is None else round(reply.high / number)),
    )
