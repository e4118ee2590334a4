"""The identity and consistency of cases: generated ids, and checks of a case and its scores beyond their types.

Generated ids are hashes of content, so that equal data get equal ids on every machine and in every run.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import ne
from typing import TypeAlias, cast

import msgspec

from steelyard.core.errors import ConfigError, EvidenceError, RecordError, listed, repeated
from steelyard.core.remedies import Advice, Command
from steelyard.core.types import Case, JsonObject, Message, Response, Scores

_canonical = msgspec.json.Encoder(order="deterministic")
_LARGEST = 1e150
"""The largest size of a score or rating: squares, and their sums over all pairs, remain finite."""
_FINITE = f"a finite number, of at most {_LARGEST:g} either way"
NO_REASON = "no reason given"
TOO_LONG = "too long"
"""The reason of a response that exceeds the model's length limit."""
STOPPED = "stopped"
"""The reason of a response that was not sent before the run was stopped: the same run scores it when it goes on."""


def content_id(content: str | JsonObject) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a text, or of a row encoded with sorted keys."""
    encoded = content.encode() if isinstance(content, str) else _canonical.encode(content)
    return hashlib.sha256(encoded).hexdigest()[:16]


class UniqueIds:
    """Make ids unique: a repeated id gets ``~2``, ``~3``, and is counted in ``num_repeated``.

    No id is returned twice: after a literal ``x~2``, the second ``x`` becomes ``x~3``.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._times: Counter[str] = Counter()
        self.num_repeated = 0

    def take(self, name: str) -> str:
        """Return the id, or its next free variant."""
        unique = name
        self._times[name] += 1
        if name in self._taken:
            self.num_repeated += 1
            self._times[name] = max(2, self._times[name])
            while (unique := f"{name}~{self._times[name]}") in self._taken:
                self._times[name] += 1
        self._taken.add(unique)
        return unique

    def take_all(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return a unique id for each id, in order."""
        return tuple(self.take(name) for name in names)


Turns: TypeAlias = str | Sequence[Mapping[str, object] | Message]
"""A text, or the messages of a conversation with ``role`` and ``content``."""


def read_turns(value: Turns, role: str, *, where: str) -> tuple[Message, ...]:
    """Return the messages of an argument; a text is one message of the role, as is a message without a role.

    Raises ConfigError, naming the argument ``where``, for any other value and for an empty list.
    """
    if isinstance(value, str):
        return (Message(role=role, content=value),)
    allowed = 'a text, or messages: [{"role": …, "content": a text}, …]'
    if isinstance(value, bytes) or not isinstance(value, Sequence) or not value:
        raise ConfigError(f"{where} is {_kind_of(value)}", allowed=allowed)
    messages: list[Message] = []
    for place, turn in enumerate(value):
        fields = {"role": role, **turn} if isinstance(turn, Mapping) else {}
        speaker, text = fields.get("role"), fields.get("content")
        if isinstance(speaker, str) and isinstance(text, str):
            messages.append(Message(role=speaker, content=text))
        elif isinstance(turn, Message):
            messages.append(turn)
        else:
            content = f" whose content is {_kind_of(turn.get('content'))}" if isinstance(turn, Mapping) else ""
            raise ConfigError(f"{where}[{place}] is {_kind_of(turn)}{content}", allowed=allowed)
    return tuple(messages)


def read_responses(value: Sequence[Turns], *, where: str) -> tuple[Response, ...]:
    """Return the responses of an argument, each a text or messages, with ids ``r1``, ``r2``, ….

    Raises ConfigError for any other value.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise ConfigError(f"{where} is {_kind_of(value)}", allowed="a list with a text or messages for each response")
    if value and all(isinstance(turn, Mapping | Message) for turn in value):
        problem = f"{where} is one conversation, not a list of responses"
        raise ConfigError(problem, do=f"put each response into a list of its own: {where}=[[message, …], …]")
    turns = [read_turns(each, "assistant", where=f"{where}[{place}]") for place, each in enumerate(value)]
    return tuple(
        Response(id=f"r{number}", text=each) if isinstance(each, str) else Response(id=f"r{number}", messages=messages)
        for number, (each, messages) in enumerate(zip(value, turns, strict=True), 1)
    )


def _kind_of(value: object) -> str:
    is_empty = isinstance(value, Sequence) and not value
    return "None" if value is None else f"an empty {type(value).__name__}" if is_empty else type(value).__name__


def check_case(case: Case) -> Case:
    """Return the case if it is consistent. Raises RecordError naming the first violation."""
    check_frame(case)
    _check_judgments(case, {response.id for response in case.responses})
    return case


def check_frame(case: Case) -> Case:
    """Run `check_case` without the lookup of judged responses, for callers that look them up themselves."""
    ids = [response.id for response in case.responses]
    known = set(ids)
    if len(known) < len(ids):
        _refuse("responses", f"response id {repeated(ids)!r} is given twice", "ids that are unique within a case")
    is_invalid = [(response.text is None) == (response.messages is None) for response in case.responses]
    if True in is_invalid:
        path = f"responses[{is_invalid.index(True)}]"
        _refuse(path, "needs either text or messages, and not both", "one of the two")
    judgment_ids = [judgment.id for judgment in case.judgments if judgment.id is not None]
    if judgment_ids and len(set(judgment_ids)) < len(judgment_ids):
        _refuse("judgments", f"judgment id {repeated(judgment_ids)!r} is given twice", "ids that are unique")
    for index, rating in enumerate(case.ratings):
        _check_known(f"ratings[{index}].response", (rating.response,), known)
        where = f"ratings[{index}]"
        if not abs(rating.value) <= _LARGEST:
            _refuse(f"{where}.value", f"the value is {rating.value}", _FINITE)
        if rating.range is not None and not rating.range[0] <= rating.range[1]:
            _refuse(f"{where}.range", f"the range is {list(rating.range)}", "the lowest value first, then the highest")
    _check_ranking(case, known)
    for index, pair in enumerate(case.pairs or ()):
        _check_two(f"pairs[{index}]", pair.better, pair.worse, known)
        if pair.weight is not None and not 0 <= pair.weight < math.inf:
            _refuse(f"pairs[{index}].weight", f"the weight is {pair.weight}", "a finite number of 0 or more")
        if pair.margin is not None and not math.isfinite(pair.margin):
            _refuse(f"pairs[{index}].margin", f"the margin is {pair.margin}", "a finite number")
    return case


def _check_judgments(case: Case, known: set[str]) -> None:
    judgments = case.judgments
    if not judgments:
        return
    # All at once, without a loop in Python; the loop below runs only to name the first violation.
    left, right = [judgment.left for judgment in judgments], [judgment.right for judgment in judgments]
    shown = chain.from_iterable([judgment.shown for judgment in judgments if judgment.shown])
    if known.issuperset(left) and known.issuperset(right) and known.issuperset(shown) and all(map(ne, left, right)):
        return
    for index, judgment in enumerate(judgments):
        _check_two(f"judgments[{index}]", judgment.left, judgment.right, known)
        _check_known(f"judgments[{index}].shown", judgment.shown or (), known)


def _check_ranking(case: Case, known: set[str]) -> None:
    if case.ranking is None:
        return
    ranked = [name for tier in case.ranking for name in tier]
    if not known.issuperset(ranked):
        _check_known("ranking", ranked, known)
    if len(set(ranked)) < len(ranked):
        _refuse("ranking", f"response {repeated(ranked)!r} is ranked twice", "each response at most once")
    if not all(case.ranking):
        _refuse("ranking", "a tier is empty", "tiers of one response or more")


def _check_two(path: str, first: str, second: str, known: set[str]) -> None:
    if first == second:
        _refuse(path, f"compares response {first!r} with itself", "two different responses")
    _check_known(path, (first, second), known)


def _check_known(path: str, names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            _refuse(path, f"names response {name!r}, which the case does not have", listed(sorted(known)))


def _refuse(path: str, problem: str, allowed: str) -> None:
    raise RecordError(f"{path}: {problem}", allowed=allowed)


def is_too_long(reason: str) -> bool:
    """Return whether the reason is the length limit, of the model or of a member of a panel."""
    return reason == TOO_LONG or reason.endswith(f": {TOO_LONG}")


def text_hashes(case: Case) -> dict[str, str]:
    """Return 16 hexadecimal digits for each response: of the turns of the prompt and of the response.

    A response of one text is one turn of the assistant.
    """
    prompt = _canonical.encode(case.prompt.messages)
    hashes: dict[str, str] = {}
    for response in case.responses:
        turns = response.messages or (Message(role="assistant", content=response.text or ""),)
        hashes[response.id] = hashlib.blake2b(prompt + _canonical.encode(turns), digest_size=8).hexdigest()
    return hashes


def with_hashes(case: Case, line: Scores) -> Scores:
    """Return the scores with the hashes of the texts of the case, which were scored."""
    return msgspec.structs.replace(line, hashes=text_hashes(case))


def checked_scores(case: Case, line: Scores, *, by: str) -> Scores:
    """Return the line with a reason for each null. Raises EvidenceError unless it scores exactly this case.

    NaN and infinity are errors: comparisons with them would look like results. So are numbers whose squares are
    infinite, and scores of other texts, where the line has their hashes.
    """
    if line.hashes:
        _refuse_other_texts(case, line, by)
    ids = [response.id for response in case.responses]
    values = line.scores.values()
    if (
        list(line.scores) == ids
        and (line.prompt, line.language) == case.key
        and not (line.unscored or line.cut or None in values)
        and all(map(math.isfinite, cast("Iterable[float]", values)))
        and max(map(abs, cast("Iterable[float]", values)), default=0.0) <= _LARGEST
    ):
        return line  # the usual case, which needs no copy
    _refuse_misfit(case, line, ids, by)
    reasons = {name: line.unscored.get(name, NO_REASON) for name in ids if line.scores[name] is None}
    return Scores(
        prompt=case.prompt.id,
        language=case.prompt.language,
        scores={name: line.scores[name] for name in ids},
        unscored=reasons,
        cut=line.cut,
        hashes=line.hashes,
    )


def _refuse_other_texts(case: Case, line: Scores, by: str) -> None:
    hashes = text_hashes(case)
    others = [name for name, known in line.hashes.items() if hashes.get(name, known) != known]
    if others:
        is_prompt = len(others) > 1 and len(others) == len(hashes)
        what = "the prompt" if is_prompt else f"response {listed(list(map(repr, others)))}"
        raise EvidenceError(
            f"{by} scores other texts of prompt {case.prompt.id!r}: {what} has changed since",
            do=Advice("score these cases again: ", Command("score")),
        )


def _refuse_misfit(case: Case, line: Scores, ids: list[str], by: str) -> None:
    prompt = f"prompt {case.prompt.id!r}"
    for name in ids:
        if name not in line.scores:
            raise EvidenceError(f"{by} gives no score for response {name!r} of {prompt}")
    known = set(ids)
    for name in (*line.scores, *line.unscored):
        if name not in known:
            raise EvidenceError(f"{by} scores response {name!r}, which {prompt} does not have")
    for name in line.cut:
        if line.scores.get(name) is None:
            raise EvidenceError(f"{by} says that it cut response {name!r} of {prompt}, which it did not score")
    for name, score in line.scores.items():
        if score is not None and not abs(score) <= _LARGEST:
            raise EvidenceError(f"{by} gives {score} for response {name!r} of {prompt}", allowed=_FINITE)
        if score is not None and name in line.unscored:
            raise EvidenceError(f"{by} gives response {name!r} of {prompt} a score and a reason for having none")
