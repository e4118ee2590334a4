"""Ask through batch files: read the results that have come, and write the requests without a reply or a wait.

One call changes the ledger once, at its end: results become replies, and the requests of new files are marked. Files
get their names after that. A kill before leaves the ledger as it was, a kill after it files that the next call names.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.comparison import Comparison, Reply, Request
from steelyard.core.errors import ConfigError, FailuresError, ModelError, RecordError, UserError, WaitingError, choices
from steelyard.core.protocols import BatchChat
from steelyard.core.remedies import FOLDER, Advice, Remedy
from steelyard.core.text import number_of
from steelyard.io.batch_files import (
    BatchFile,
    BatchLimits,
    BatchWriter,
    RequestResult,
    batch_folder,
    check_unchanged,
    name_batch,
    read_results,
    result_files,
    tidy_batches,
)
from steelyard.io.batch_marks import ALL_BATCHES, HeldResult, waiting_text
from steelyard.io.ledger import Ledger
from steelyard.io.progress import bar, log
from steelyard.judging.asking import PricedChat, ask_requests, requests_of
from steelyard.judging.early_abort import MORE_TOKENS, CutReplies, FirstFailures, RequestCounts
from steelyard.judging.panel import JudgePanel
from steelyard.judging.token_use import Budget, Ceilings

_DATE = re.compile(r"[-:@_](\d{3,8}|\d{4}-\d\d-\d\d)")
"""Suffixes that services add to a model's name: 0613, 20241022, 2024-07-18."""
_decoder = msgspec.json.Decoder(RequestResult)
_NO_REPLIES = CutReplies()
_FIRST_FAILURES = FirstFailures()


class BatchPlan(NamedTuple):
    """Use of batch files by a call.

    ``release`` names a batch whose requests end their wait, or is `ALL_BATCHES`. ``any_model`` accepts results under
    the name of another model. Where at most ``most_failed`` items failed in a batch, null for any number, they are left
    out; the next batch asks for more than these again.
    """

    folder: Path
    release: str | None = None
    any_model: bool = False
    most_failed: int | None = 0
    limits: BatchLimits = BatchLimits()


def check_batch_options(
    batch: Path | None, out: Path, ceilings: Ceilings, *, release: str | None, any_model: bool, most_failed: int | None
) -> BatchPlan | None:
    """Return the plan of these options; null without a folder.

    Raises ConfigError for options that have no effect, and for ``out``, the folder of the run, as that of the batches.
    """
    if batch is None:
        if any_model:
            do = Advice("name their folder, ", Remedy("batch", FOLDER), ", or leave the option out")
            raise ConfigError("there are no results without a batch folder", where="any_batch_model", do=do)
        return None
    if batch.resolve() == out.resolve():
        raise ConfigError(
            "batch files in the folder of the run", where="batch", do=Advice("name another ", Remedy("batch"))
        )
    if any(limit is not None for limit in ceilings):
        do = "leave the ceiling out; a dry run forecasts what the requests cost"
        problem = Advice("a ceiling stops requests that are sent; ", Remedy("batch"), " sends none")
        raise ConfigError(problem, where="batch", do=do)
    return BatchPlan(batch, release, any_model, most_failed)


class Batches:
    """The batch files of one call: `ask` takes the results of one model's requests, and writes those without any."""

    def __init__(self, plan: BatchPlan, ledger: Ledger) -> None:
        self.plan, self.ledger = plan, ledger
        self.problem: UserError | None = None
        self._writers: list[BatchWriter] = []
        self._num_late = 0

    def read(self) -> None:
        """Read the result files that are new. Raises RecordError for a result that is none of this run's."""
        marks = self.ledger.batches
        for path, digest in result_files(self.plan.folder, marks):
            num_results = 0
            for result in read_results(path):
                finding, batch = marks.settle(result.request, result.digest, path.name)
                if finding == "unknown":
                    problem = f"no batch of this run has the custom_id {result.request!r}"
                    do = "move the results of other runs out of the folder"
                    raise RecordError(problem, where=result.place, do=do)
                if finding == "repeated":
                    problem = f"{result.request!r} has another result already"
                    do = "keep one result of each request: move the other file out of the folder"
                    raise RecordError(problem, where=result.place, do=do)
                if finding != "known":
                    marks.hold(result.request, HeldResult(batch, msgspec.json.encode(result).decode()))
                    num_results += 1
            marks.add_file(digest, path.name)
            log(f"read {path}: {number_of(num_results, 'result')}")

    def ask(
        self,
        model: PricedChat,
        requests: Iterable[Request],
        ledger: Ledger,
        *,
        num_requests: int | None,
        max_truncated: float = 0.2,
        remedy: str = MORE_TOKENS,
        first_failures: FirstFailures = _FIRST_FAILURES,
        cuts: CutReplies = _NO_REPLIES,
    ) -> RequestCounts:
        """Store the results of the requests, and write those that have neither a reply nor a wait.

        ``cuts`` are the replies of earlier rounds, and part of the share that is cut off.

        Raises ConfigError for a chat without batches, RecordError for a result that its model did not write. The
        caller learns at the end of all (`open_batches`) whether requests wait, and whether too many were cut off.
        """
        if not isinstance(model.chat, BatchChat):
            problem = f"a {model.chat.protocol().get('chat', 'chat')} chat cannot be asked in batch files"
            do = Advice("leave out ", Remedy("batch"), ", or use ", Remedy("chat.kind", "openai_compatible"))
            raise ConfigError(problem, where=model.name, allowed="chats of the kind openai_compatible", do=do)
        writer = BatchWriter(self.plan.folder, model.name, first=self._next_number(), limits=self.plan.limits)
        self._writers.append(writer)
        tally = _Tally(model.name, cuts, first_failures)
        is_new = ledger.new_ids()
        with bar(f"preparing {model.name}", num_requests) as shown:
            for request in requests:
                shown.advance()
                if is_new(request.id):
                    tally.num_questions += 1
                    self._ask_one(request, model.chat, writer, tally)
        writer.close()
        try:
            tally.check(max_truncated, remedy)
        except (FailuresError, ModelError) as error:
            self.problem = self.problem or error
        return RequestCounts(tally.num_questions, tally.num_kept, tally.num_failed)

    def finish(self) -> list[BatchFile]:
        """Mark the requests of the new files, and return these; none after a problem that further requests repeat.

        Raises RecordError for a result of a request that this run does not ask.
        """
        for held in self.ledger.batches.held():
            result = _decoder.decode(held.content)
            problem = f"this run no longer asks the request {result.request!r}"
            do = "move the file out of the folder: cases or settings differ from those of its batch"
            raise RecordError(problem, where=result.place, do=do)
        if self._num_late:
            log(f"not used: {number_of(self._num_late, 'result')} of released requests that had another reply")
        files = [] if self.problem else [file for writer in self._writers for file in writer.files]
        since = datetime.now().astimezone().isoformat(" ", "minutes")
        for file in files:
            self.ledger.batches.mark(file.name, file.digest, since, file.requests)
        return files

    def abandon(self) -> None:
        """Close what is being written."""
        for writer in self._writers:
            writer.abandon()

    def _ask_one(self, request: Request, chat: BatchChat, writer: BatchWriter, tally: "_Tally") -> None:
        marks = self.ledger.batches
        held = marks.take(request.id)
        if self.ledger.has(request.id):
            tally.num_kept += 1
            self._num_late += held is not None
            return
        if held is not None:
            reply = self._reply(request, held, chat)
            self.ledger.add(reply)
            tally.add(reply, request)
            if reply.failure != "failed":
                return
        if marks.is_waiting(request.id):
            return
        most = self.plan.most_failed
        if most != 0 and marks.was_read(request.id):
            tally.num_failed += 1
            if most is None:
                return
            tally.failed.append(request)
            tally.failed_items.update(tally.first_failures.items_of(request.id))
            if len(tally.failed_items) <= most:
                return
            # More than may be left out: all of them are asked again.
            for failed in tally.failed:
                writer.add(failed.id, *chat.batch_request(failed))
            tally.failed.clear()
            return
        writer.add(request.id, *chat.batch_request(request))

    def _reply(self, request: Request, held: HeldResult, chat: BatchChat) -> Reply:
        """Return the reply that a result is. Raises RecordError for a body that is none, or of another model."""
        result = _decoder.decode(held.content)
        if result.status is None:
            return Reply(request=request.id, failure="failed", detail=result.error, batch=held.batch)
        reply = chat.batch_reply(request, result.status, result.body)
        if reply.failure == "failed" and (reply.detail or "").startswith("malformed"):
            do = "download the whole file again"
            raise RecordError(f"no chat completion ({reply.detail})", where=result.place, do=do)
        model = str(chat.protocol()["model"])
        if reply.model is not None and not self.plan.any_model and not _is_same_model(model, reply.model):
            raise RecordError(
                f"a reply of the model {reply.model!r}, where {model!r} was asked",
                where=result.place,
                do=Advice(
                    "move the file out of the folder, or say ",
                    Remedy("any_batch_model", value=True),
                    " if the service names the model so",
                ),
            )
        return msgspec.structs.replace(reply, batch=held.batch)

    def _next_number(self) -> int:
        written = [name for writer in self._writers for name in (file.name for file in writer.files)]
        numbers = (int(name.split("-")[1]) for name in (*self.ledger.batches.names(), *written))
        return 1 + max(numbers, default=0)


class _Tally:
    """Counts of one model's requests, and of the results of this call."""

    def __init__(self, name: str, cuts: CutReplies, first_failures: FirstFailures) -> None:
        self.name, self._cuts, self._num_before = name, cuts, cuts.num_answered
        self.first_failures = first_failures
        self.failed_items: set[str] = set()
        self._refused_items: set[str] = set()
        self.num_questions = self.num_kept = self.num_failed = 0
        self._num_refused = 0
        self.failed: list[Request] = []
        self._first_failure = ""

    def add(self, reply: Reply, request: Request) -> None:
        """Count a result."""
        if reply.failure != "failed":
            self._cuts = self._cuts.plus(reply, request.question)
            return
        self._num_refused += 1
        self._refused_items.update(self.first_failures.items_of(request.id))
        self._first_failure = self._first_failure or reply.detail or ""

    def check(self, max_truncated: float, remedy: str) -> None:
        """Log the failures. Raises FailuresError or ModelError where another batch is futile, as for requests sent."""
        num_answered = self._cuts.num_answered
        if self._num_refused:
            of = number_of(num_answered - self._num_before + self._num_refused, "result")
            log(f"{self.name}: {self._num_refused:,} of {of} failed, the first with {self._first_failure[:200]}")
        if not num_answered and self.first_failures.is_futile(self._num_refused, len(self._refused_items)):
            problem = f"all {self._num_refused} results are failures ({self._first_failure[:200]})"
            do = "check the chat's settings; run the same again to write these requests to another batch file"
            raise FailuresError(problem, where=self.name, do=do)
        if fault := self._cuts.fault(max_truncated, model=self.name, remedy=remedy):
            raise fault


@contextmanager
def open_batches(plan: BatchPlan, ledger: Ledger) -> Iterator[Batches]:
    """Open the folder of batch files for one call, whose block asks every model.

    Raises WaitingError at the end where requests wait, FailuresError or ModelError where further batches are futile;
    what has come back is stored in all cases. After any other error the ledger and the folder are as before.
    """
    with batch_folder(plan.folder):
        batches = Batches(plan, ledger)
        files: list[BatchFile] = []
        try:
            tidy_batches(plan.folder, ledger.batches)
            check_unchanged(plan.folder, ledger.batches)
            with ledger.together():
                batches.read()
                if plan.release is not None:
                    _release(plan.release, ledger)
                yield batches
                files = batches.finish()
            for file in files:
                name_batch(plan.folder, file.name)
                log(f"wrote {plan.folder / file.name}: {number_of(len(file.requests), 'request')}")
        finally:
            # The ledger decides: a file whose requests are marked gets its name, any other one goes.
            batches.abandon()
            tidy_batches(plan.folder, ledger.batches)
        if batches.problem is not None:
            raise batches.problem
        if waiting := ledger.batches.waiting():
            without = () if plan.release is None else (" without ", Remedy("release_batch"))
            do = Advice(
                "send each file to the batch service, put what comes back into the folder under names that end in "
                ".jsonl, and run the same again",
                *without,
                "; ",
                Remedy("release_batch", "all"),
                " asks these requests again",
            )
            raise WaitingError(
                waiting_text(waiting),
                where=str(plan.folder),
                do=do,
                num_waiting=sum(batch.num_waiting for batch in waiting),
            )


def ask_panel_in_batches(
    panel: JudgePanel,
    comparisons: Callable[[], Iterable[Comparison]],
    ledger: Ledger,
    plan: BatchPlan,
    *,
    max_truncated: float,
) -> dict[str, RequestCounts]:
    """Ask every judge of the panel through batch files, whose results are stored. Returns counts by judge.

    Raises as `open_batches` and `Batches.ask` do.
    """
    with open_batches(plan, ledger) as batches:
        return {
            member.name: batches.ask(
                PricedChat(member.name, member.chat, member.price),
                (request for comparison in comparisons() for request in requests_of(member, comparison)),
                ledger,
                num_requests=sum(map(member.num_requests, comparisons())),
                max_truncated=max_truncated,
                first_failures=FirstFailures.of(allow_failed=plan.most_failed is None),
            )
            for member in panel.members
        }


@contextmanager
def opened_requests(
    plan: BatchPlan | None,
    release: str | None,
    ledger: Ledger,
    *,
    budget: Budget,
    allow_failed: bool | None = None,
) -> Iterator[Callable[..., RequestCounts]]:
    """Yield what asks the requests of a chat: now, within a budget of all chats, or with a plan through batch files."""
    first_failures = FirstFailures.of(allow_failed=allow_failed)
    if plan is None:
        release_before_sending(release, ledger)
        yield partial(ask_requests, first_failures=first_failures, budget=budget)
    else:
        with open_batches(plan, ledger) as batches:
            yield partial(batches.ask, first_failures=first_failures)


def release_before_sending(name: str | None, ledger: Ledger) -> None:
    """End the wait of a batch's requests, or of all, in a run without batch files; nothing without a name.

    Raises ConfigError for a batch that was never written.
    """
    if name is not None:
        with ledger.together():
            _release(name, ledger)


def _release(name: str, ledger: Ledger) -> None:
    try:
        number = ledger.batches.release(Path(name).name)
    except KeyError as error:
        allowed = choices(name, (ALL_BATCHES, *ledger.batches.names()))
        raise ConfigError(f"there is no batch {name!r}", where="release_batch", allowed=allowed) from error
    log(f"released {number_of(number, 'request')}: do not send their batch files any more")


def _is_same_model(requested: str, reported: str) -> bool:
    """Return whether a server may mean the model that was asked: services add a date, or leave out an owner."""
    model, reply_model = (name.lower().rpartition("/")[2] for name in (requested, reported))
    addition = reply_model.removeprefix(model.removesuffix("-latest"))
    return model == reply_model or _DATE.fullmatch(addition) is not None
