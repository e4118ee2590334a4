"""Responses of many models through the ledger: the requests of a plan, and the replies as responses of a case.

Prompts of several turns take several rounds: each turn follows the model's own answers to the turns before it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from steelyard.core.checks import content_id
from steelyard.core.comparison import Question, Reply, Request
from steelyard.core.config import resolve_config
from steelyard.core.errors import ConfigError, errors_at
from steelyard.core.plugins import load
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import response_text
from steelyard.core.types import Case, JsonObject, Message, Prompt, Record, Response
from steelyard.io.ledger import Ledger
from steelyard.judging.asking import PricedChat, as_request, ask_requests, token_use
from steelyard.judging.early_abort import FirstFailures, RequestCounts
from steelyard.judging.panel import DEFAULT_CHAT, ChatChoice, build_chat, choose_chat
from steelyard.judging.reply_words import after_thinking
from steelyard.judging.token_use import AnyPrice, Price, TokenUse
from steelyard.responses.plan import (
    PlannedModel,
    PlannedSample,
    SamplingPlan,
    later_turns,
    opening_messages,
    planned_samples,
    request_seed,
)

SampleOutcome = Literal["response", "refused", "cut off", "empty", "failed"]
"""Outcome of a planned response; a refusal or a text that was cut off may still be kept as one."""
SAMPLES = "samples"
"""The key in a response's meta of the samples that have its text."""
_ENDS = {None: "stop", "cut off": "length", "refused": "refusal"}
SHORTER = Advice("set max_tokens of the plan or the model to more, or say ", Remedy("max_truncated", 1.0))


class KeepRules(NamedTuple):
    """Keep refusals and texts that reached the token limit as responses; their meta says which they are."""

    refused: bool
    cut_off: bool

    def keeps(self, outcome: SampleOutcome) -> bool:
        """Return whether a sample of this outcome becomes a response."""
        return {"response": True, "refused": self.refused, "cut off": self.cut_off}.get(outcome, False)


class SampledText(Record, frozen=True, kw_only=True):
    """One sample of a text, in the meta of its response. ``request`` is the id of its first request in the ledger.

    ``end``: stop, length (cut off at the token limit) or refusal. Tokens are those of all its turns.
    """

    author: str
    request: str
    repeat: int = 0
    seed: int | None = None
    end: str = "stop"
    served_by: str | None = None
    prompt_tokens: int | None = None
    reply_tokens: int | None = None


class SampleResult(NamedTuple):
    """Outcome of one planned response. ``text`` is null where there is none, ``messages`` of one turn too.

    ``num_characters`` is the length of the text, 0 without one; ``is_repeated``: another response has the same text.
    """

    sample: PlannedSample
    outcome: SampleOutcome
    num_characters: int = 0
    is_repeated: bool = False


class ModelChoices(NamedTuple):
    """A plan, and the checked settings of each model's chat by its name."""

    plan: SamplingPlan
    chats: Mapping[str, ChatChoice]

    def inputs(self) -> dict[str, Path]:
        """Return the files by role, as a run records its inputs."""
        return {f"{name}.{key}": path for name, choice in self.chats.items() for key, path in choice.files.items()}

    def settings(self) -> JsonObject:
        """Return all settings that decide the responses, defaults included."""
        return {
            "plan": msgspec.to_builtins(self.plan),
            "chats": {name: choice.settings for name, choice in self.chats.items()},
        }


class ResponseModels(NamedTuple):
    """A plan with its chats, which are built, and the seed of the run."""

    plan: SamplingPlan
    chats: Mapping[str, PricedChat]
    seed: int

    def protocol(self) -> JsonObject:
        """Return what decides each model's responses, by name."""
        return {name: model.chat.protocol() for name, model in self.chats.items()}


def choose_models(plan: SamplingPlan, *, where: str) -> ModelChoices:
    """Check the chat of each model, with the sampling settings of the plan; nothing is built or sent.

    Raises ConfigError for a setting that the chat lacks or has twice, and as `choose_chat` does.
    """
    choices: dict[str, ChatChoice] = {}
    for model in plan.models:
        place = f"{where} at {model.name}"
        with errors_at(place):
            choices[model.name] = _choose_model(model, plan, place)
    return ModelChoices(plan, choices)


def _choose_model(model: PlannedModel, plan: SamplingPlan, place: str) -> ChatChoice:
    kind = str(model.chat.get("kind", DEFAULT_CHAT))
    keys = {field.name for field in msgspec.structs.fields(load("chats", kind).Config)}
    for key in ("temperature", "top_p"):
        if getattr(model, key) is None:
            continue
        if key in model.chat:
            raise ConfigError(f"{key} is set twice", where=place, do=f"leave {key} out of the chat")
        if key not in keys:
            raise ConfigError(f"a {kind} chat has no {key}", where=place, do=f"leave {key} out")
    price_of(model, place)
    # A model that has nothing to say is sampled, too: asked again until it writes, its share of empty texts would be 0.
    sampling = {"keeps_empty": True, **model.chat, **plan.sampling_of(model)}
    return choose_chat({key: value for key, value in sampling.items() if key in keys | model.chat.keys()}, where=place)


def build_models(choices: ModelChoices, *, seed: int) -> ResponseModels:
    """Build every chat. Raises ConfigError without a key, ModelError for a model that cannot be loaded."""
    chats: dict[str, PricedChat] = {}
    for model in choices.plan.models:
        with errors_at(f"model {model.name}"):
            chat = build_chat(choices.chats[model.name])
        chats[model.name] = PricedChat(model.name, chat, price_of(model, model.name))
    return ResponseModels(choices.plan, chats, seed)


def new_samples(models: ResponseModels, case: Case, only: str | None = None) -> Iterator[tuple[PlannedSample, Request]]:
    """Yield the planned samples that the case has no response of yet, each with its first request.

    ``only`` is the name of the one model whose samples are wanted; null for all.
    """
    present = {sample.get("request") for response in case.responses for sample in samples_of(response)}
    for sample in planned_samples(models.plan, case.prompt, seed=models.seed):
        if only not in (None, sample.model):
            continue
        request = _request(models, case.prompt, sample, ())
        if request.id not in present:
            yield sample, request


def samples_of(response: Response) -> list[JsonObject]:
    """Return the samples in the meta of a response; what another program wrote under that key is none."""
    samples: Any = (response.meta or {}).get(SAMPLES)
    return [sample for sample in samples if isinstance(sample, dict)] if isinstance(samples, list) else []


def ask_models(
    models: ResponseModels,
    cases: Callable[[], Iterable[Case]],
    ledger: Ledger,
    *,
    max_truncated: float,
    ask: Callable[..., RequestCounts] = ask_requests,
) -> dict[str, RequestCounts]:
    """Ask every model for its new samples, turn by turn, and store the replies. Returns counts by model.

    ``ask`` is `ask_requests`, or the function of batch files (`Batches.ask`). Raises as that does; failures of a later
    turn never end the run, since the model has answered.
    """
    counts = dict.fromkeys(models.chats, RequestCounts())
    for turn in range(1 + max((len(later_turns(case.prompt)) for case in cases()), default=0)):
        numbers = Counter(sample.model for case in cases() for sample, _ in _requests(models, case, ledger, turn))
        for name, chat in models.chats.items():
            if not numbers[name]:
                continue
            requests = (request for case in cases() for _, request in _requests(models, case, ledger, turn, name))
            send = partial(ask, first_failures=FirstFailures(None)) if turn else ask
            added = send(
                chat, requests, ledger, num_requests=numbers[name], max_truncated=max_truncated, remedy=SHORTER
            )
            counts[name] = RequestCounts(*map(sum, zip(counts[name], added, strict=True)))
    return counts


def with_responses(
    case: Case, models: ResponseModels, ledger: Ledger, keep: KeepRules
) -> tuple[Case, tuple[SampleResult, ...]]:
    """Return the case with its new responses, and what became of each new sample.

    Equal texts are one response: its meta has every sample. A response that the case had stays as it is, and gets the
    samples with its text.
    """
    responses = {response.id: response for response in case.responses}
    by_text = {response_text(response): response.id for response in case.responses}
    results: list[SampleResult] = []
    for sample, request in new_samples(models, case):
        replies = _replies(models, case.prompt, sample, ledger)
        is_whole = len(replies) == len(later_turns(case.prompt)) + 1 and _text(replies[-1]).strip()
        outcome: SampleOutcome = replies[-1].failure or ("response" if is_whole else "empty")
        text = "\n".join(_text(reply) for reply in replies)
        if not text.strip() or not keep.keeps(outcome):
            results.append(SampleResult(sample, outcome))
            continue
        response = _response(case.prompt, sample, replies, seed=request.question.seed, request=request.id)
        key = response_text(response)
        is_repeated = key in by_text
        if is_repeated:
            former = responses[by_text[key]]
            meta = former.meta or {}
            samples = [*samples_of(former), *samples_of(response)]
            response = msgspec.structs.replace(former, meta={**meta, SAMPLES: samples})
        else:
            number, id_ = 2, response.id
            while id_ in responses:
                id_, number = f"{response.id}~{number}", number + 1
            response = msgspec.structs.replace(response, id=id_)
        by_text[key] = response.id
        responses[response.id] = response
        num_characters = sum(len(_text(reply)) for reply in replies)
        results.append(SampleResult(sample, outcome, num_characters, is_repeated))
    return msgspec.structs.replace(case, responses=tuple(responses.values())), tuple(results)


def request_ids(models: ResponseModels, case: Case, ledger: Ledger, model: str) -> Iterator[str]:
    """Yield the id of every request to a model for the case's new samples, those of later turns too."""
    for turn in range(1 + len(later_turns(case.prompt))):
        for _, request in _requests(models, case, ledger, turn, model):
            yield request.id


def tokens_used(models: ResponseModels, cases: Callable[[], Iterable[Case]], ledger: Ledger) -> dict[str, TokenUse]:
    """Return the tokens that each model used for the new samples of the cases, by name."""
    return {
        name: token_use(
            chat,
            (request for case in cases() for request in request_ids(models, case, ledger, name)),
            ledger,
        )
        for name, chat in models.chats.items()
    }


def known_replies(
    models: ResponseModels, case: Case, sample: PlannedSample, ledger: Ledger
) -> Iterator[tuple[Request, Reply]]:
    """Yield the requests of a sample's turns that have a reply in the ledger, in order, each with its reply."""
    replies: tuple[Reply, ...] = ()
    while len(replies) <= len(later_turns(case.prompt)):
        request = _request(models, case.prompt, sample, replies)
        reply = ledger.known(request.id)
        if reply is None:
            return
        yield request, reply
        replies = (*replies, reply)
        if reply.failure is not None or not _text(reply).strip():
            return


def price_of(model: PlannedModel, where: str) -> AnyPrice | None:
    """Return the price of a model's tokens. Raises ConfigError for a name or a number that prices do not have."""
    prices = model.price
    if prices is None:
        return None
    by_name: JsonObject = dict(prices if isinstance(prices, dict) else zip(("input", "output"), prices, strict=True))
    return resolve_config(Price, by_name, where=f"{where}, price")


def _requests(
    models: ResponseModels, case: Case, ledger: Ledger, turn: int, only: str | None = None
) -> Iterator[tuple[PlannedSample, Request]]:
    """Yield the requests of one turn; of a later turn those whose turns before it were answered."""
    if turn > len(later_turns(case.prompt)):
        return
    for sample, request in new_samples(models, case, only):
        if turn == 0:
            yield sample, request
            continue
        replies = _replies(models, case.prompt, sample, ledger, num_turns=turn)
        if len(replies) == turn and all(reply.failure is None and _text(reply).strip() for reply in replies):
            yield sample, _request(models, case.prompt, sample, replies)


def _request(models: ResponseModels, prompt: Prompt, sample: PlannedSample, replies: tuple[Reply, ...]) -> Request:
    """Return the request for the turn after these replies."""
    model = models.plan.model(sample.model)
    messages = [*opening_messages(model, prompt)]
    for reply, turn in zip(replies, later_turns(prompt), strict=False):
        messages += [Message(role="assistant", content=_text(reply)), Message(role="user", content=turn)]
    question = Question(
        messages=tuple(messages),
        max_tokens=models.plan.longest(model),
        seed=request_seed(models.plan, sample, prompt, seed=models.seed, turn=len(replies)),
    )
    return as_request(question, models.chats[sample.model].chat, sample.repeat)


def _replies(
    models: ResponseModels, prompt: Prompt, sample: PlannedSample, ledger: Ledger, *, num_turns: int | None = None
) -> tuple[Reply, ...]:
    """Return the replies to a sample's turns, in order, up to the first one that is missing or incomplete."""
    replies: tuple[Reply, ...] = ()
    most = 1 + len(later_turns(prompt)) if num_turns is None else num_turns
    while len(replies) < most:
        reply = ledger.reply(_request(models, prompt, sample, replies).id)
        replies = (*replies, reply)
        if reply.failure is not None or not _text(reply).strip():
            break
    return replies


def _text(reply: Reply) -> str:
    """Return the text of a reply without its thinking; a refusal may have its words in the detail alone."""
    if reply.text or reply.failure != "refused" or reply.detail is None or reply.detail.startswith("content filter"):
        return after_thinking(reply.text or "")
    return reply.detail


def _response(
    prompt: Prompt, sample: PlannedSample, replies: tuple[Reply, ...], *, seed: int | None, request: str
) -> Response:
    """Return the response of these replies: a text, or messages where the prompt has later turns."""
    last = replies[-1]
    written = SampledText(
        author=sample.model,
        request=request,
        repeat=sample.repeat,
        seed=seed,
        end=_ENDS[last.failure],
        served_by=last.model,
        prompt_tokens=_total(reply.prompt_tokens for reply in replies),
        reply_tokens=_total(reply.reply_tokens for reply in replies),
    )
    meta = {SAMPLES: [msgspec.to_builtins(written)]}
    if not later_turns(prompt):
        text = _text(last)
        return Response(id=content_id(text), text=text, author=sample.model, meta=meta)
    messages = [Message(role="assistant", content=_text(replies[0]))]
    for turn, reply in zip(later_turns(prompt), replies[1:], strict=False):
        messages += [Message(role="user", content=turn), Message(role="assistant", content=_text(reply))]
    whole = "\n".join(message.content for message in messages)
    return Response(id=content_id(whole), messages=tuple(messages), author=sample.model, meta=meta)


def _total(numbers: Iterable[int | None]) -> int | None:
    present = [number for number in numbers if number is not None]
    return sum(present) if present else None
