"""The verb `judge`: language models compare the responses of a case file, and their verdicts join the evidence.

Requests go through a ledger; then every stored reply is parsed and the new evidence is written.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import IO, Literal, NamedTuple

import msgspec

from steelyard.annotation.triple_designs import TripleDesign
from steelyard.core.comparison import Comparison
from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, EvidenceError, choices
from steelyard.core.protocols import Chat
from steelyard.core.types import Case, Counts, Message, Meta, Run
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import read_cases, read_scored, write_cases
from steelyard.io.ledger import LEDGER_FILE, Ledger, open_ledger, read_ledger
from steelyard.io.lines import read_toml
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.tempfiles import LineStore, open_line_store
from steelyard.judging.asking import JudgingSummary, answers_of, ask_panel, tokens_used
from steelyard.judging.batches import BatchPlan, ask_panel_in_batches, check_batch_options, release_before_sending
from steelyard.judging.forecast import CountTokens, Forecast, forecast_member
from steelyard.judging.futile_requests import RequestCounts, refuse_failed
from steelyard.judging.judge_card import check_people, judge_cards
from steelyard.judging.pair_plans import PairChoice, PairPlan
from steelyard.judging.panel import JudgePanel, PanelChoice, PanelMember, build_panel, choose_panel
from steelyard.judging.pilot import PilotEnd, ask_judges, check_pilot
from steelyard.judging.planning import NO_RESPONSES, JudgeTask, PlannedCase, add_verdicts, plan_case
from steelyard.judging.prefix_order import store_comparisons, stored_comparisons
from steelyard.judging.run_status import RunStatus, replies_per_second, status_of
from steelyard.judging.token_use import AnyPrice, Ceilings
from steelyard.judging.unreadable import UNREADABLE_FILE, unreadable_replies
from steelyard.judging.verdicts import VerdictCounter


class Config(BaseConfig, frozen=True):
    """The questions, and the judges that answer them. A combined judgment has the single replies in its meta."""

    task: JudgeTask = "pairs"
    """What a request compares: pairs, triples (which ones: triples), the best of up to four, or ratings."""
    chat: Meta = msgspec.field(default_factory=dict)
    """The chat: its kind and the settings of the kind (docs/settings.md, under chats)."""
    judge: Meta = msgspec.field(default_factory=dict)
    """The style of the questions and its settings: docs/settings.md, under judges."""
    pairs: PairChoice = "all"
    """Of the task pairs: all, random (num_pairs a prompt), unsure (by scores or a judge), disputed (by two judges)."""
    num_pairs: Positive | None = None
    """The number of pairs of a prompt: drawn with each response equally often, or the least sure."""
    max_margin: float | None = None
    """With pairs=unsure and --scores: compare the pairs whose scores differ by less."""
    judges: tuple[str, ...] = ()
    """With pairs=unsure or disputed: the judges of the file that count. Default: all."""
    triples: TripleDesign = "covering"
    """From six responses on: covering, every pair in the fewest triples; or circular, as many triples as responses."""
    price: AnyPrice | None = None
    """Prices of a million tokens in any currency, [input, output], or with cached_input and cache_write by name."""
    members: tuple[PanelMember, ...] = ()
    """The members of a panel, each with its chat and judge."""
    allow_even: bool = False
    """Accept a panel with an even number of members, whose votes can be even."""
    name: str = "panel"
    """The name of the panel in the judgments."""
    write: Literal["combined", "replies"] = "combined"
    """Write one judgment for all replies about a pair, or one for every reply with the order it had."""
    prefix_distance: Positive = 32
    """The distance of requests that begin alike, so that a server has it cached: as many as it answers at once."""
    prime: bool = True
    """Await the first reply with each of the first beginnings before sending more: only then caches have it."""
    repeats: Positive = 1
    """The number of times that every question is sent; the verdict is that of most repeats."""
    max_truncated: float = 0.2
    """The largest share of replies that may be cut off."""
    num_resamples: Positive = 1000
    """The number of bootstrap resamples of prompts."""
    seed: int = 0
    """The seed of drawn orders and of the resamples."""


_DEFAULT = Config()


class _Asking(NamedTuple):
    """The judges, the ledger of their replies, and when the run ends early."""

    panel: JudgePanel
    ledger: Ledger
    ceilings: Ceilings
    batches: BatchPlan | None
    allow_failed: bool


class JudgeForecast(NamedTuple):
    """What a run would ask: cases in all, those with comparisons, and the requests of each model."""

    num_cases: int
    num_used: int
    models: tuple[Forecast, ...]
    kind: Literal["forecast"] = "forecast"


class JudgeStatus(NamedTuple):
    """How far the run in a folder has come."""

    status: RunStatus
    kind: Literal["status"] = "status"


def judge(
    cases: Path,
    out: Path,
    config: Config = _DEFAULT,
    *,
    scores: Path | None = None,
    calibrate: Path | None = None,
    prices: Path | None = None,
    max_cost: float | None = None,
    max_failed: int | None = None,
    max_hours: float | None = None,
    dry_run: bool = False,
    pilot: int | None = None,
    tokenizer: Path | None = None,
    rate: float | None = None,
    status: bool = False,
    batch: Path | None = None,
    release_batch: str | None = None,
    any_batch_model: bool = False,
    allow_failed: bool = False,
    chat: Chat | None = None,
    force: bool = False,
) -> Run[JudgingSummary] | JudgeForecast | JudgeStatus:
    """Write ``cases.jsonl`` with the new judgments or ratings; every reply stays in ``replies.sqlite``.

    ``unreadable.jsonl`` has the replies without a verdict. ``scores`` is the score file of ``pairs=unsure``; ``chat``
    is an object that replies, instead of the settings of one. ``calibrate`` has people's labels of some of the cases,
    with which the judges are compared (``card`` of the summary).

    ``prices`` is a TOML file of prices of a million tokens by model. At ``max_cost``, over all replies, at
    ``max_failed`` requests or after ``max_hours`` no further request is sent; a call with a higher ceiling continues.

    With ``dry_run`` nothing is sent or written: the forecast says what would be. It counts tokens by ``tokenizer``, a
    folder, or by characters, corrected by the replies in ``out``, and hours at ``rate`` requests a second, or at the
    rate of an unfinished run there. ``pilot`` requests to each judge, drawn at random, are sent and their replies kept;
    the forecast is that of the others, and the same call without ``pilot`` goes on. With ``status`` only the state of
    the run in ``out`` is returned.

    With ``batch`` nothing is sent: the requests go to batch files in that folder, and the results that were put there
    are read (`steelyard.judging.batches`). ``release_batch`` names a batch whose requests are free again;
    ``any_batch_model`` accepts results under another model's name. Raises WaitingError while requests wait.

    After a kill, or where requests failed, the same call continues: answered requests are not repeated. Raises
    ModelError where requests failed and ``allow_failed`` is not set (with it they are judgments without a verdict, for
    the reason ``failed``), and where a chat cannot be reached; CeilingError at a ceiling; EvidenceError where no case
    has a comparison, or no label of people's.
    """
    if status:
        return JudgeStatus(status_of(out))
    check_pilot(pilot, dry_run=dry_run, batch=batch)
    choice = _choose(config, prices, chat, needs_prices=max_cost is not None)
    ceilings = Ceilings(max_cost, max_failed, max_hours)
    ceilings.check()
    if rate is not None and not 0 < rate < inf:
        raise ConfigError(f"rate is {rate:g}", where="rate", allowed="a number of requests a second above 0")
    batches = check_batch_options(
        batch, out, ceilings, release=release_batch, any_model=any_batch_model, allow_failed=allow_failed
    )
    settings = msgspec.to_builtins(config) | {"jury": choice.settings()}
    files = {"scores": scores, "calibrate": calibrate}
    inputs = {"cases": cases, **{name: path for name, path in files.items() if path is not None}, **choice.inputs()}
    _check_judges(cases, config.judges)
    planned = _planned(cases, scores, _pair_plan(config, has_scores=scores is not None), config)
    if dry_run:
        panel = build_panel(choice, name=config.name, repeats=config.repeats)
        speed = replies_per_second(out) if rate is None else rate
        with read_ledger(out / LEDGER_FILE) as ledger:
            return _forecast(planned, panel, ledger, tokenizer, speed)

    def write(result: Result) -> None:
        if calibrate is not None:
            check_people(cases, calibrate)
        with open_ledger(result.path(LEDGER_FILE)) as ledger:
            panel = build_panel(choice, name=config.name, repeats=config.repeats)
            if batches is None:
                release_before_sending(release_batch, ledger)
            asking = _Asking(panel, ledger, ceilings, batches, allow_failed=allow_failed)
            if pilot is not None:
                speed = _ask_pilot(planned, config, asking, pilot)
                raise PilotEnd(_forecast(planned, panel, ledger, tokenizer, speed if rate is None else rate))
            _run(result, planned, config, asking)
        if calibrate is not None:
            judged = read_cases(result.path("cases.jsonl"))
            card = judge_cards(judged, read_cases(calibrate), seed=config.seed, num_resamples=config.num_resamples)
            result.summary = msgspec.structs.replace(result.summary, card=card)

    try:
        return run_stage(out, "judge", Run[JudgingSummary], write, config=settings, inputs=inputs, force=force)
    except PilotEnd as end:
        return end.forecast


def _choose(config: Config, prices: Path | None, chat: Chat | None, *, needs_prices: bool) -> PanelChoice:
    """Return the judges with their prices. Raises ConfigError where a model has none and one is needed."""
    choice = choose_panel(
        config.task,
        chat=config.chat,
        judge=config.judge,
        price=config.price,
        members=config.members,
        allow_even=config.allow_even,
        built=chat,
    )
    if prices is not None:
        choice = choice.priced(read_toml(prices), where=str(prices))
    if needs_prices and any(member.price is None for member in choice.members):
        do = "name a file of prices, --prices prices.toml, or --set price=[1.0,2.0]"
        raise ConfigError("max_cost needs a price for every model", where="max_cost", do=do)
    return choice


def _pair_plan(config: Config, *, has_scores: bool) -> PairPlan:
    """Return which pairs are compared. Raises ConfigError for a choice of pairs where the task has none."""
    plan = PairPlan(config.pairs, config.num_pairs, config.max_margin, config.judges)
    plan.check(has_scores=has_scores)
    if config.task != "pairs" and plan.choice != "all":
        raise ConfigError(f"task={config.task} has no pairs to choose", where="pairs", do="say --task pairs")
    return plan


def _check_judges(cases: Path, judges: Sequence[str]) -> None:
    """Raise ConfigError for a judge that the plan names and that no judgment of the file is by."""
    if not judges:
        return
    known = {judgment.judge for case in read_cases(cases) for judgment in case.judgments}
    for judge in judges:
        if judge not in known:
            allowed = choices(judge, known) if known else "none: the file has no judgments"
            raise ConfigError(f"no judgment of {cases} is by {judge!r}", where="judges", allowed=allowed)


def _run(result: Result, planned: Callable[[], Iterator[PlannedCase]], config: Config, asking: "_Asking") -> None:
    panel, ledger = asking.panel, asking.ledger
    with open_line_store(result.folder) as store:
        reasons = _store(planned(), panel, store)
        left_out = {reason: number for reason, number in reasons.items() if reason is not None}
        num_cases = reasons.total()
        if not reasons[None]:
            problem = f"none of {num_cases} cases can be compared ({', '.join(left_out)})"
            where = str(result.request.inputs["cases"].path)
            do = "choose another task or other pairs: --task pairs --pairs all"
            if set(left_out) == {NO_RESPONSES}:
                do = "let models answer the prompts first: steelyard sample"
            raise EvidenceError(problem, where=where, do=do)
        counts = _ask(asking, lambda: stored_comparisons(store), config)
        if not asking.allow_failed:
            refuse_failed(counts, ledger, without="a verdict")
        tokens = tokens_used(panel, lambda: stored_comparisons(store), ledger)
    counter = VerdictCounter()
    with atomic_write(result.path(UNREADABLE_FILE)) as unreadable:
        judged = _judged(planned(), panel, config, ledger, counter=counter, unreadable=unreadable)
        write_cases(result.path("cases.jsonl"), judged)
    judges = counter.summaries(seed=config.seed, num_resamples=config.num_resamples)
    noted = {"questions": sum(count.num_questions for count in counts.values())}
    noted |= {f"verdict: {name}": number for name, number in judges[panel.name].outcomes.items()}
    result.counts = Counts(
        num_in=num_cases, num_used=reasons[None], dropped=dict(sorted(left_out.items())), noted=noted
    )
    result.summary = JudgingSummary(
        judge=panel.name,
        task=config.task,
        judges=judges,
        tokens=tokens,
        failed=ledger.failures(),
        protocol=panel.protocol(),
    )


def _ask_pilot(
    planned: Callable[[], Iterator[PlannedCase]], config: Config, asking: _Asking, number: int
) -> float | None:
    """Ask some questions, and return the requests a second; null where all had been answered before."""
    started = time.monotonic()
    comparisons = partial(_comparisons, planned)
    counts = ask_judges(asking.panel, comparisons, asking.ledger, number, max_truncated=config.max_truncated)
    if not asking.allow_failed:
        refuse_failed(counts, asking.ledger, without="a verdict")
    num_sent = sum(count.num_questions - count.num_kept for count in counts.values())
    return num_sent / (time.monotonic() - started) if num_sent else None


def _comparisons(planned: Callable[[], Iterator[PlannedCase]]) -> Iterator[Comparison]:
    return (comparison for case in planned() for comparison in case.comparisons)


def _ask(
    asking: "_Asking", comparisons: Callable[[], Iterable[Comparison]], config: Config
) -> dict[str, RequestCounts]:
    panel, ledger = asking.panel, asking.ledger
    if asking.batches is not None:
        return ask_panel_in_batches(panel, comparisons, ledger, asking.batches, max_truncated=config.max_truncated)
    return ask_panel(
        panel,
        comparisons,
        ledger,
        max_truncated=config.max_truncated,
        prefix_distance=config.prefix_distance,
        prime=config.prime,
        ceilings=asking.ceilings,
    )


def _forecast(
    planned: Callable[[], Iterator[PlannedCase]],
    panel: JudgePanel,
    ledger: Ledger | None,
    tokenizer: Path | None,
    rate: float | None,
) -> JudgeForecast:
    reasons = Counter(case.reason for case in planned())
    count_tokens = None if tokenizer is None else _token_counter(tokenizer)
    # The ids of a million requests are on disk.
    with open_ledger(None) as distinct:
        models = tuple(
            forecast_member(
                member,
                partial(_comparisons, planned),
                (lambda request: None) if ledger is None else ledger.known,
                count_tokens=count_tokens,
                requests_per_second=rate,
                is_new=distinct.new_ids(),
            )
            for member in panel.members
        )
    return JudgeForecast(reasons.total(), reasons[None], models)


def _token_counter(tokenizer: Path) -> CountTokens:
    """Return a function that counts the tokens of messages, in the tokenizer's chat template if it has one."""
    from steelyard.networks.loading import load_tokenizer

    loaded = load_tokenizer(str(tokenizer))
    loaded.model_max_length = 2**62  # counting needs no limit, and no warning of one

    def num_tokens(messages: Sequence[Message]) -> float:
        if loaded.chat_template is None:
            return float(sum(len(loaded(turn.content, add_special_tokens=False).input_ids) for turn in messages))
        turns = msgspec.to_builtins(messages)
        text = loaded.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return float(len(loaded(text, add_special_tokens=False).input_ids))

    return num_tokens


def _store(planned: Iterable[PlannedCase], panel: JudgePanel, store: LineStore) -> Counter[str | None]:
    """Store the comparisons in the order of the requests; count the cases without one by reason."""
    reasons = Counter[str | None]()
    for case in planned:
        reasons[case.reason] += 1
        store_comparisons(store, panel, case.comparisons)
    store.index()
    return reasons


def _planned(cases: Path, scores: Path | None, plan: PairPlan, config: Config) -> Callable[[], Iterator[PlannedCase]]:
    """Return a reader of the cases with their comparisons. It reads the file each time, which may exceed memory."""
    planned_case = partial(plan_case, task=config.task, plan=plan, seed=config.seed, triples=config.triples)

    def planned() -> Iterator[PlannedCase]:
        if scores is None:
            return (planned_case(case) for case in read_cases(cases))
        return (planned_case(case, scores=line.scores) for case, line in read_scored(read_cases(cases), scores))

    return planned


def _judged(
    planned: Iterable[PlannedCase],
    panel: JudgePanel,
    config: Config,
    ledger: Ledger,
    *,
    counter: VerdictCounter,
    unreadable: IO[bytes],
) -> Iterator[Case]:
    """Yield the cases with their verdicts, count these, and write the replies that have none."""
    for case, comparisons, _ in planned:
        answers = [answers_of(panel, comparison, ledger) for comparison in comparisons]
        for comparison, answer in zip(comparisons, answers, strict=True):
            counter.add(case.prompt, answer)
            for reply in unreadable_replies(panel, comparison, answer, ledger):
                unreadable.write(msgspec.json.encode(reply) + b"\n")
        yield add_verdicts(case, answers, by=panel.name, each=config.write == "replies")
