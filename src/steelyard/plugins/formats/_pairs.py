"""Formats of one better and one worse answer per row: values of `PairFormat`, over the turns of a pair.

First the turns of a row and the rows of a case, with a prompt under its own key or inside both answers; then ranks as
tiers and the two sides of a ranking; last the formats.
"""

import os.path
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Case, JsonObject, Message, Pair, Ranking, Rating, Response
from steelyard.curation.column_names import prompt_name
from steelyard.curation.format_support import count_lost
from steelyard.curation.uniform_columns import MARGIN
from steelyard.io.json_text import decode_list
from steelyard.plugins.formats._languages import prompt_cells, prompt_fields
from steelyard.plugins.formats._rating_scales import RatingScale, rating_of
from steelyard.plugins.formats._row_format import (
    OTHER_SHAPE,
    CaseReader,
    RowFormat,
    as_read,
)
from steelyard.plugins.formats._turns import (
    ROLE_AND_CONTENT,
    answer_turns,
    as_turns,
    decoded_turns,
    earlier_turns,
    field_turns,
    is_text,
)
from steelyard.ranking.pairs import IndexedPair, num_beyond_listed, pairs_of

SIDES = ("chosen", "rejected")
NOT_SEPARABLE = "prompts inside the answers"
"""The counter of written conversations whose prompt a reader would cut elsewhere."""
TITLES = "titles beside whole conversations, left out"
"""The counter of prompts beside two conversations that hold the prompt themselves."""
_SYSTEM, _HISTORY = "system", "history"
ASSISTANT_MARK = "\n\nAssistant:"


class PairTurns(NamedTuple):
    """The turns of a pair: the prompt that both answers share, and each answer."""

    prompt: tuple[Message, ...]
    chosen: tuple[Message, ...]
    rejected: tuple[Message, ...]

    def are_texts(self) -> bool:
        """Return whether all three can be written as texts."""
        return (
            is_text(self.prompt, "user") and is_text(self.chosen, "assistant") and is_text(self.rejected, "assistant")
        )

    def is_separable(self, *, as_texts: bool = False) -> bool:
        """Return whether the two whole conversations would be cut here: not if the answers begin with equal turns."""
        if not as_texts:
            return bool(self.prompt) and cut_turns(self.prompt + self.chosen, self.prompt + self.rejected) == self
        prompt, *answers = ("".join(turn.content for turn in part) for part in self)
        row = Row(Place("the row to write"), {key: prompt + text for key, text in zip(SIDES, answers, strict=True)})
        try:
            return implicit_turns(row, Counter()) == self
        except RecordError:
            return False


class PairRow(NamedTuple):
    """A pair to write as one row: the better and the worse answer, and their positions."""

    better: Response
    worse: Response
    pair: IndexedPair

    def turns(self, case: Case) -> PairTurns:
        """Return the turns of the row."""
        return PairTurns(case.prompt.messages, answer_turns(self.better), answer_turns(self.worse))


def pair_rows(case: Case, dropped: Counter[str], supports: Collection[str]) -> Iterator[PairRow]:
    """Yield every pair of the case (its listed pairs, else all across tiers); all else is counted."""
    pairs = pairs_of(case)
    count_lost(case, dropped, supports)
    used = {end for pair in pairs for end in pair[:2]}
    counts = {
        "responses in no pair": len(case.responses) - len(used),
        "ranked pairs that are not listed": num_beyond_listed(case, pairs_of(case, "tiers")),
        "prompts without a pair": not pairs,
    }
    for name, number in counts.items():
        if number:
            dropped[name] += int(number)
    for pair in pairs:
        yield PairRow(case.responses[pair.better], case.responses[pair.worse], pair)


def cut_turns(chosen: Sequence[Message], rejected: Sequence[Message]) -> PairTurns:
    """Cut two conversations after their longest common run of turns; at least one turn stays on either side."""
    length = 0
    while length < min(len(chosen), len(rejected)) - 1 and chosen[length] == rejected[length]:
        length += 1
    return PairTurns(tuple(chosen[:length]), tuple(chosen[length:]), tuple(rejected[length:]))


def shared_turns(row: Row, sides: Sequence[str] = SIDES, *, do: str | None = None) -> PairTurns:
    """Cut the two conversations of a row. Raises RecordError for other values, and where they share no turn."""
    turns = cut_turns(*(field_turns(row, key, role="assistant") for key in sides))
    if not turns.prompt:
        raise RecordError(f"{' and '.join(sides)} share no turn", where=row.place, do=do)
    return turns


def implicit_turns(
    row: Row, warnings: Counter[str], sides: Sequence[str] = SIDES, *, do: str | None = None
) -> PairTurns:
    """Cut two texts or two lists of turns with the prompt inside both. Raises RecordError where there is none.

    Texts keep their marks: writing restores the text that was read.
    """
    chosen, rejected = decoded_turns([row.value.get(key) for key in sides])
    if isinstance(chosen, list) and isinstance(rejected, list):
        return shared_turns(Row(row.place, dict(zip(sides, (chosen, rejected), strict=True))), sides, do=do)
    if not (isinstance(chosen, str) and isinstance(rejected, str)):
        return shared_turns(row, sides, do=do)
    common = os.path.commonprefix([chosen, rejected])  # noqa: RUF071  a prefix of characters is intended
    at = common.rfind(ASSISTANT_MARK)
    end = at + len(ASSISTANT_MARK)
    if at < 0:
        end = common[: min(map(len, (chosen, rejected))) - 1].rfind("\n") + 1
    name = prompt_name({key: value for key, value in row.value.items() if key not in sides})
    if at < 0 and name is not None:
        problem = f"{' and '.join(sides)} share no turn, and {name!r} beside them may be the prompt"
        raise RecordError(
            problem,
            where=row.place,
            do=Advice("name its column: ", Remedy("prompt_column", name), ", without ", Remedy("from_kind")),
        )
    if end <= 0:
        raise RecordError(f"{' and '.join(sides)} share no prompt", where=row.place, do=do)
    warnings["prompts cut at a line break, not at a turn"] += at < 0
    texts = ("user", common[:end]), ("assistant", chosen[end:]), ("assistant", rejected[end:])
    return PairTurns(*((Message(role=role, content=text),) for role, text in texts))


def whole_turns(turns: PairTurns, sides: Sequence[str] = SIDES) -> JsonObject:
    """Return both conversations as lists of turns."""
    conversations = (as_turns(turns.prompt + turns.chosen), as_turns(turns.prompt + turns.rejected))
    return dict(zip(sides, conversations, strict=True))


def tiers_of(ranks: Mapping[str, float]) -> Ranking:
    """Return the ids by their rank, smallest first; equal ranks are one tier."""
    tiers: dict[float, list[str]] = defaultdict(list)
    for name, rank in ranks.items():
        tiers[rank].append(name)
    return tuple(tuple(tiers[rank]) for rank in sorted(tiers))


def rank_of(ranking: Ranking, *, first: int = 1) -> dict[str, int]:
    """Return the rank of each id: the number of its tier."""
    return {name: number for number, tier in enumerate(ranking, first) for name in tier}


class ParsedPair(NamedTuple):
    """The turns of a row, and the facts of its form that the turns do not hold."""

    turns: PairTurns
    form: JsonObject


class PairScores(NamedTuple):
    """The keys of both answers' scores and their scale."""

    keys: tuple[str, str]
    scale: RatingScale

    def read(self, row: Row, responses: Sequence[Response], warnings: Counter[str]) -> tuple[Rating, ...]:
        """Return the ratings of both answers; a better one that is not rated higher is counted, not corrected."""
        values = [row.number(key) for key in self.keys]
        chosen, rejected = values
        if chosen is not None and rejected is not None and chosen <= rejected:
            warnings["pairs whose scores contradict their order"] += 1
        rated = zip(responses, values, strict=True)
        return tuple(rating_of(item.id, value, self.scale, warnings) for item, value in rated if value is not None)


class PairFormat(NamedTuple):
    """A format of pairs. ``parse`` reads the turns of a row and ``row_of`` writes them.

    ``keys``, ``turn_keys``, ``null_keys``, ``required`` and ``reserved_keys`` are those of `RowFormat`. ``row_of``
    returns null for an unfit pair: the whole case is then counted and not written. Null ``row_of`` and ``scores`` are
    of formats that are only read. ``id_key`` is the key of the prompt's id, which its rows share: a repeated id gets
    ``~2`` and is counted.
    A text under ``system`` is a system turn, unless the format has its own rule for this key. Earlier turns under
    ``history`` beside a text under ``prompt`` are turns of the prompt, and texts under ``language`` and ``category``
    are the prompt's, under the same condition. These texts are written again, but a category of several tiers is not:
    a column has values of one type.
    """

    kind: str
    keys: tuple[str, ...]
    supports: frozenset[str]
    matches: Callable[[JsonObject], bool]
    parse: Callable[[Row, Counter[str]], ParsedPair]
    row_of: Callable[[PairTurns, JsonObject, Counter[str]], JsonObject | None] | None = None
    turn_keys: tuple[str, ...] = ()
    turn_fields: tuple[str, ...] = ROLE_AND_CONTENT
    null_keys: tuple[str, ...] = ()
    has_margin: bool = False
    scores: PairScores | None = None
    id_key: str | None = None
    required: str | None = None
    better_keys: tuple[str, ...] = (SIDES[0],)
    worse_keys: tuple[str, ...] = (SIDES[1],)
    reserved_keys: tuple[str, ...] = ()

    def format(self) -> RowFormat:
        """Return the format of the rows."""
        shared = (self.kind, self.keys, self._carried, self.matches, self._case)
        return RowFormat(
            *shared,
            rows_of=None if self.row_of is None else self._rows,
            turn_keys=self.turn_keys,
            turn_fields=self.turn_fields,
            required=self.required,
            better_keys=self.better_keys,
            worse_keys=self.worse_keys,
            reads_text=self._reads_text,
            reserved_keys=self.reserved_keys,
        )

    def _reads_text(self, key: str, text: str) -> bool:
        return key not in self.keys and (key == _SYSTEM or bool(prompt_fields({key: text}, ())))

    @property
    def _carried(self) -> frozenset[str]:
        return self.supports | ({"language"} - {*self.keys})

    def _case(self, reader: CaseReader) -> Case:
        """Return a case of two tiers; a margin becomes a listed pair, and scores become ratings."""
        row = reader.row
        turns, form = self.parse(row, reader.warnings)
        margin = row.number(MARGIN) if self.has_margin else None
        form = form | {"null": row.nulls(self.null_keys)}
        fields: JsonObject = {}
        if self.id_key is not None:
            fields["id"] = reader.ids.take_shared(row.text(self.id_key))
        system = None if _SYSTEM in self.keys else row.value.get(_SYSTEM)
        known = [*self.keys]
        if history := self._history(row, turns, reader.warnings):
            turns = turns._replace(prompt=(*history, *turns.prompt))
            known.append(_HISTORY)
        if isinstance(system, str) and system:
            turns = turns._replace(prompt=(Message(role="system", content=system), *turns.prompt))
            known.append(_SYSTEM)
        labels = prompt_fields(row.value, self.keys)
        form["labels"] = {key: row.value[key] for key, _ in labels.values()} or None
        fields |= {field: value for field, (_, value) in labels.items()}
        known += form["labels"] or ()
        prompt = reader.prompt(turns.prompt, meta=row.others(known), **fields)
        responses = reader.responses(turns[1:])
        better, worse = (response.id for response in responses)
        return Case(
            prompt=prompt,
            responses=responses,
            ratings=self.scores.read(row, responses, reader.warnings) if self.scores else (),
            ranking=((better,), (worse,)),
            pairs=None if margin is None else (Pair(better=better, worse=worse, margin=float(margin)),),
            meta=as_read(self.kind, **form) if self.row_of else {},
        )

    def _history(self, row: Row, turns: PairTurns, warnings: Counter[str]) -> tuple[Message, ...]:
        """Return the turns under ``history`` before a prompt that is one text; a text is none, and is counted."""
        value, prompt = row.value.get(_HISTORY), row.value.get("prompt")
        is_own_key = _HISTORY in self.keys or "prompt" not in self.keys
        if is_own_key or not isinstance(prompt, str) or [turn.content for turn in turns.prompt] != [prompt]:
            return ()
        is_text = isinstance(value, str) and bool(value.strip()) and decode_list(value) is None
        warnings["texts under history, not in the prompt"] += is_text
        return () if is_text else earlier_turns(value, row.place, _HISTORY)

    def _rows(self, case: Case, form: JsonObject, dropped: Counter[str]) -> list[JsonObject]:
        """Return a row per pair; none for a case of an unfit pair, which is counted."""
        assert self.row_of is not None, "a format that is only read"
        has_margins = self.has_margin and any(pair.margin is not None for pair in case.pairs or ())
        rows: list[JsonObject] = []
        labels = prompt_cells(case.prompt, form.get("labels") or {}, self.keys)
        is_held = len(case.prompt.category) == 1 and "category" not in self.keys
        rest = replace(case, prompt=replace(case.prompt, category=())) if is_held else case
        for pair in pair_rows(rest, dropped, self._carried):
            row = self.row_of(pair.turns(case), form, dropped)
            if row is None:
                dropped[OTHER_SHAPE] += 1
                return []
            rows.append(row | labels | ({MARGIN: pair.pair.margin} if has_margins else {}))
        return rows
