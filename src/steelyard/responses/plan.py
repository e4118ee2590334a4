"""Sampling plans: which models answer a prompt, how often, with which system prompt and which seed.

The samples of a prompt are a pure function of the plan, the seed and the prompt's key. Models are drawn by rank: each
sample of each model has a random number from the key and the model's name, and the lowest are drawn. All models are
therefore drawn, and any two meet, equally often on average; a sample that is added later displaces at most one other.
"""

from collections import Counter, defaultdict
from typing import Any, Literal, NamedTuple

import msgspec

from steelyard.core.config import Config, Positive, resolve_config
from steelyard.core.errors import ConfigError, listed, repeated
from steelyard.core.languages import language_key, language_part
from steelyard.core.numerics import derived_seed
from steelyard.core.types import JsonObject, Message, Meta, Prompt
from steelyard.responses.rewriting import RewritePlan

Group = Literal["strong", "weak"]
ANSWER_IN_PROMPT_LANGUAGE = "prompt"
_SEED_BITS = 31
_TURNS = "turns"

_MOST_RESPONSES = 10_000
"""The most responses to a prompt: a plan lists them all."""


class PlannedModel(Config, frozen=True):
    """One model of a plan. ``name`` identifies it: draws and seeds depend on the name, not on the place in the plan."""

    chat: Meta
    """The chat: its kind and the settings of the kind (docs/settings.md, under chats)."""
    name: str = ""
    """The author of the responses. Default: the name of the chat, of its model or of its folder."""
    num_responses: Positive = 1
    """The number of responses to a prompt; where models are drawn, the most of this model."""
    group: Group | None = None
    """The group whose quota the model counts towards."""
    temperature: float | None = None
    """The sampling temperature; none for the plan's."""
    top_p: float | None = None
    """The share of probability of the likeliest tokens that are sampled from; none for the plan's."""
    max_tokens: Positive | None = None
    """The longest response, in tokens; none for the plan's."""
    seed: int | None = None
    """The seed of this model's requests; none for that of the run."""
    send_seed: bool = True
    """Send each request with a seed of its own; some servers refuse one."""
    system: str = ""
    """The system prompt. A prompt with a system message keeps its own."""
    answer_language: str | None = None
    """Ask for answers in this language, by its English name, or in that of the prompt: prompt."""
    languages: tuple[str, ...] = ()
    """Answer only prompts in these languages; zh includes zh-Hans, and zho zho_Hans."""
    categories: tuple[str, ...] = ()
    """Answer only prompts with one of these categories at any tier."""
    price: tuple[float, float] | dict[str, float] | None = None
    """The price of a million tokens, of prompts and of responses, or by name as judge takes it, in any currency."""

    def answers(self, prompt: Prompt) -> bool:
        """Return whether the model answers prompts of this language and category."""
        is_language = not self.languages or any(_is_in(prompt.language, language) for language in self.languages)
        return is_language and (not self.categories or not {*self.categories}.isdisjoint(prompt.category))


class SamplingPlan(Config, frozen=True):
    """A plan: its models, and how many of them answer a prompt."""

    models: tuple[PlannedModel, ...]
    """The models, a [[models]] table each."""
    about: str = ""
    """A description of the plan."""
    num_responses: Positive | None = None
    """The number of responses to a prompt, from models drawn at random; none: every model answers."""
    quotas: dict[Group, Positive] = msgspec.field(default_factory=dict)
    """The number of responses to a prompt from each group, strong and weak; together num_responses."""
    temperature: float = 0.7
    """The sampling temperature of models that have none of their own."""
    top_p: float | None = None
    """The share of probability of the likeliest tokens that are sampled from; none for the server's."""
    max_tokens: Positive = 2048
    """The longest response, in tokens."""
    rewrite: RewritePlan | None = None
    """A [rewrite] table: the models write new prompts from those of the file, and do not answer them."""

    def model(self, name: str) -> PlannedModel:
        """Return the model of this name."""
        return next(model for model in self.models if model.name == name)

    def longest(self, model: PlannedModel) -> int:
        """Return the longest response of a model, in tokens."""
        return model.max_tokens or self.max_tokens

    def sampling_of(self, model: PlannedModel) -> dict[str, float]:
        """Return the sampling settings of a model that its chat does not set itself."""
        temperature = self.temperature if model.temperature is None else model.temperature
        top_p = self.top_p if model.top_p is None else model.top_p
        settings = {"temperature": temperature} | ({} if top_p is None else {"top_p": top_p})
        return {key: value for key, value in settings.items() if key not in model.chat}


class PlannedSample(NamedTuple):
    """One response that a model writes to a prompt: ``repeat`` counts its responses to that prompt from 0."""

    model: str
    repeat: int


def parse_plan(content: JsonObject, *, where: str) -> SamplingPlan:
    """Return the plan of a decoded TOML file, with a name for each model.

    Raises ConfigError for a setting that is unknown or not allowed, two models of one name, a model without chat, and a
    number of responses that the models cannot write.
    """
    tables = content.get("models")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise ConfigError("a plan without models", where=where, allowed="a [[models]] table for each model")
    models: list[PlannedModel] = []
    for number, table in enumerate(tables, 1):
        place = f"{where} at models, number {number}"
        if not isinstance(table.get("chat"), dict) or not table["chat"]:
            do = 'add chat = { kind = "openai_compatible", base_url = "http://localhost:8000/v1", model = "NAME" }'
            raise ConfigError("a model without a chat", where=place, do=do)
        model = resolve_config(PlannedModel, table, where=place)
        models.append(msgspec.structs.replace(model, name=model.name or _default_name(model.chat)))
        _check_sampling(model.temperature, model.top_p, place)
    rest = resolve_config(SamplingPlan, {**content, "models": []}, where=where)
    plan = msgspec.structs.replace(rest, models=tuple(models))
    _check_sampling(plan.temperature, plan.top_p, where)
    names = [model.name for model in plan.models]
    if len({*names}) < len(names):
        problem = f"two models of one name: {repeated(names)!r}"
        raise ConfigError(problem, where=where, do="give each model a name; for more responses set num_responses")
    if wrong := [name for name in names if not name.strip() or not name.isprintable()]:
        raise ConfigError(f"a model named {wrong[0]!r}", where=where, allowed="a name of printable characters")
    # Several responses at temperature 0 would all be the same.
    for each in plan.models:
        temperature = each.chat.get("temperature", plan.sampling_of(each).get("temperature"))
        if each.num_responses > 1 and temperature == 0:
            problem = f"{each.num_responses} responses of {each.name!r} at temperature 0 are one response"
            raise ConfigError(problem, where=where, do="set num_responses = 1, or a temperature above 0")
    _check_numbers(plan, where)
    if plan.rewrite is not None:
        plan.rewrite.check(f"{where} at rewrite")
    return plan


def planned_samples(plan: SamplingPlan, prompt: Prompt, *, seed: int) -> tuple[PlannedSample, ...]:
    """Return the samples of a prompt in the order of the plan; fewer than wanted where too few models answer it."""
    samples = [
        PlannedSample(model.name, repeat)
        for model in plan.models
        if model.answers(prompt)
        for repeat in range(model.num_responses)
    ]
    if plan.num_responses is None and not plan.quotas:
        return tuple(samples)
    rank = {sample: derived_seed(seed, "drawn", *_key(prompt), *sample) for sample in samples}
    order = sorted(samples, key=rank.__getitem__)
    if plan.quotas:
        by_group: defaultdict[Group | None, list[PlannedSample]] = defaultdict(list)
        for sample in order:
            by_group[plan.model(sample.model).group].append(sample)
        drawn = {sample for group, quota in plan.quotas.items() for sample in by_group[group][:quota]}
    else:
        drawn = {*order[: plan.num_responses]}
    # The repeats of a model are interchangeable: the first ones are taken, so that they have no gaps.
    number = Counter(sample.model for sample in drawn)
    return tuple(sample for sample in samples if sample.repeat < number[sample.model])


def request_seed(plan: SamplingPlan, sample: PlannedSample, prompt: Prompt, *, seed: int, turn: int = 0) -> int | None:
    """Return the seed of a request, which fits 31 bits; null for a model that is sent none.

    It depends on the prompt's key, the model's name, the repeat and the turn, not on the other models.
    """
    model = plan.model(sample.model)
    if not model.send_seed:
        return None
    root = seed if model.seed is None else model.seed
    names = (*_key(prompt), sample.model, sample.repeat, *((turn,) if turn else ()))
    return derived_seed(root, "sample", *names) >> (63 - _SEED_BITS)


def opening_messages(model: PlannedModel, prompt: Prompt) -> tuple[Message, ...]:
    """Return the messages that a model answers: the prompt's, with the system prompt and the language of the plan.

    A prompt with a system message keeps it; the wish for a language follows it.
    """
    has_system = bool(prompt.messages) and prompt.messages[0].role == "system"
    parts = [prompt.messages[0].content if has_system else model.system]
    if model.answer_language is not None:
        language = model.answer_language
        wanted = "the language of the question" if language == ANSWER_IN_PROMPT_LANGUAGE else language
        parts.append(f"Answer in {wanted}.")
    text = "\n\n".join(filter(None, parts))
    system = (Message(role="system", content=text),) if text else ()
    return (*system, *prompt.messages[has_system:])


def later_turns(prompt: Prompt) -> tuple[str, ...]:
    """Return the user's turns after the first answer: those of ``turns`` in the prompt's meta after its last message.

    MT-bench has two turns; the first is the prompt. Without ``turns``, or where they belong to another text, none.
    """
    turns: Any = (prompt.meta or {}).get(_TURNS)
    if not isinstance(turns, list) or not all(isinstance(turn, str) and turn.strip() for turn in turns):
        return ()
    return tuple(turns[1:]) if turns and turns[0] == prompt.messages[-1].content else ()


def _key(prompt: Prompt) -> tuple[str, str]:
    return prompt.id, prompt.language or ""


def _is_in(code: str | None, language: str) -> bool:
    """Return whether a code is the language, or one of its scripts and regions: ``zh-Hant`` of zh, not of zh-Hans."""
    is_in_any_script = language.strip().isalpha()
    identity = language_part if is_in_any_script else language_key
    return code is not None and identity(code) == identity(language)


def _default_name(chat: JsonObject) -> str:
    """Return the name of a chat: its own, its model's, its folder's, or its kind."""
    if isinstance(chat.get("path"), str) and not chat.get("name") and chat.get("kind") != "recorded":
        return chat["path"].rstrip("/").rpartition("/")[2]
    return str(chat.get("name") or chat.get("model") or chat.get("kind") or "")


def _check_sampling(temperature: float | None, top_p: float | None, where: str) -> None:
    if temperature is not None and not 0 <= temperature <= 5:
        raise ConfigError(f"temperature is {temperature!r}", where=where, allowed="a number from 0 to 5")
    if top_p is not None and not 0 < top_p <= 1:
        raise ConfigError(f"top_p is {top_p!r}", where=where, allowed="a number above 0, up to 1")


def _check_numbers(plan: SamplingPlan, where: str) -> None:
    total = sum(model.num_responses for model in plan.models)
    if total > _MOST_RESPONSES:
        problem = f"the models write {total:,} responses to each prompt"
        raise ConfigError(problem, where=where, allowed=f"up to {_MOST_RESPONSES:,}")
    if plan.num_responses is not None and plan.num_responses > total:
        problem = f"num_responses is {plan.num_responses}, and the models write {total} together"
        raise ConfigError(problem, where=where, do="add models, or set num_responses of a model")
    if not plan.quotas:
        return
    if plan.num_responses not in (None, sum(plan.quotas.values())):
        problem = f"num_responses is {plan.num_responses}, and the quotas are {sum(plan.quotas.values())} together"
        raise ConfigError(problem, where=where, do="leave num_responses out, or correct the quotas")
    if without := [model.name for model in plan.models if model.group is None]:
        problem = f"quotas, and models without a group: {listed(without)}"
        raise ConfigError(problem, where=where, do='add group = "strong" or group = "weak"')
    for group, quota in plan.quotas.items():
        number = sum(model.num_responses for model in plan.models if model.group == group)
        if quota > number:
            problem = f"the quota of {group} models is {quota}, and they write {number} together"
            raise ConfigError(problem, where=where, do="add models, or set num_responses of a model")
