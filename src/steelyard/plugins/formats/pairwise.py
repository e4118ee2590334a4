r"""Formats of a prompt, a chosen and a rejected answer, whose differences are the names of keys and the prompt's place.

Adding one is an entry of ``KINDS`` here, a golden file in ``tests/golden/formats`` and a row in ``docs/formats.md``.
"""

from collections import Counter
from typing import NamedTuple

from steelyard.core.config import Config
from steelyard.core.errors import ConfigError, RecordError
from steelyard.core.plugins import Plugin, without_settings
from steelyard.core.protocols import Row
from steelyard.core.remedies import NAME, Advice, Remedy
from steelyard.core.types import JsonObject, Message
from steelyard.curation.column_names import may_hold_prompt, prompt_name
from steelyard.curation.format_support import carrying_pairs
from steelyard.curation.uniform_columns import MARGIN
from steelyard.plugins.formats._pairs import (
    ASSISTANT_MARK,
    NOT_SEPARABLE,
    SIDES,
    TITLES,
    PairFormat,
    PairTurns,
    ParsedPair,
    cut_turns,
    implicit_turns,
)
from steelyard.plugins.formats._row_format import (
    TEXT_ROWS,
    TRL_COLUMNS,
    RowFormat,
)
from steelyard.plugins.formats._tool_exports import is_annotation_row, is_flat_record
from steelyard.plugins.formats._turns import (
    HUMAN,
    answer_of,
    are_conversations,
    as_turns,
    decoded_turns,
    field_turns,
    turns_in,
    turns_of,
)

_TRL_KEYS = ("prompt", *SIDES)
_TRANSCRIPT = "\n\nHuman:"


class PairLayout(NamedTuple):
    """The columns of a pair of one type each: lists of turns, or with ``as_texts`` texts alone.

    A column of texts and turns cannot be read by ``datasets``, polars or a Parquet file, and a trainer that looks at
    the first row alone trains the other rows without their chat template. A null ``prompt_key`` is a prompt inside both
    answers.
    """

    prompt_key: str | None
    sides: tuple[str, str]
    as_texts: bool

    def row(self, turns: PairTurns, form: JsonObject, dropped: Counter[str]) -> JsonObject | None:
        """Return the pair as a row; null where it has no prompt, or cannot be texts."""
        prompt, *answers = turns
        if (self.as_texts and not turns.are_texts()) or (self.prompt_key and not prompt):
            return None
        if self.prompt_key:
            parts = dict(zip((self.prompt_key, *self.sides), turns, strict=True))
        else:
            parts = {key: prompt + answer for key, answer in zip(self.sides, answers, strict=True)}
            dropped[NOT_SEPARABLE] += not turns.is_separable(as_texts=self.as_texts)
        if self.as_texts:
            return {key: "".join(turn.content for turn in part) for key, part in parts.items()}
        return {key: as_turns(part) for key, part in parts.items()}


class TrlConfig(Config, frozen=True):
    """``implicit`` writes the prompt inside both answers, instead of under ``prompt``."""

    implicit: bool = False
    """Write the prompt inside both answers, and not under prompt."""
    texts: bool = False
    """Write texts, not lists of turns: TRL then trains without the chat template."""


def _trl(config: TrlConfig) -> RowFormat:
    """Build the format of TRL's preference pairs: the prompt under its own key, or inside both answers.

    Written from the dataset-formats page of TRL's documentation. Texts and turns are read; every row is written as
    turns, unless the settings say texts. An implicit prompt is the longest common run of turns; of texts, the longest
    common beginning, cut back to the last assistant mark in it (a blank line and ``Assistant:``), or else to the last
    line break after which both still go on. A row without a common beginning is refused; a cut at a line break is
    counted, for it can fall inside a common beginning of both answers. A ``prompt`` of text next to two whole
    conversations is their title, and left out: the prompt is their common turns, as in TRL.
    """
    layout = PairLayout(None if config.implicit else "prompt", SIDES, config.texts)
    return PairFormat(
        kind="trl",
        keys=(*_TRL_KEYS, MARGIN),
        supports=carrying_pairs("margins", "answers of several turns"),
        matches=lambda row: (
            set(SIDES) <= row.keys()
            and not _is_hh_rlhf(row)
            and not is_flat_record(row)
            and not is_annotation_row(row)
            and ("prompt" in row or _are_whole(row) or not _has_prompt_apart(row))
        ),
        parse=_parse_trl,
        row_of=layout.row,
        turn_keys=_TRL_KEYS,
        has_margin=True,
        required=TEXT_ROWS if config.texts else None,
        # TRL takes any of these keys to tell whether the rows are conversations.
        reserved_keys=(*TRL_COLUMNS, "completion", "messages"),
    ).format()


def _parse_trl(row: Row, warnings: Counter[str]) -> ParsedPair:
    # A text beside conversations that begin before the answer is a title.
    has_title = isinstance(row.value.get("prompt"), str) and _are_whole(row.value)
    if "prompt" not in row.value or has_title:
        turns = implicit_turns(row, warnings, do="give the prompt its own key, of the same form")
        warnings[TITLES] += has_title
    elif (transcript := _open_transcript(row)) is not None:
        warnings["prompts that are transcripts, read as turns"] += 1
        turns = transcript
    else:
        prompt = turns_of(row.value["prompt"], row.place, "prompt", role="user")
        sides = zip(decoded_turns([row.value.get(key) for key in SIDES]), SIDES, strict=True)
        answers = [turns_of(side, row.place, key, role="assistant") for side, key in sides]
        rests = [answer[len(prompt) :] for answer in answers]
        if all(rests) and all(answer[: len(prompt)] == prompt for answer in answers):
            warnings["prompts repeated in both answers, left out there"] += 1
            answers = rests
        elif all(len(part) == 1 for part in (prompt, *answers)):
            # The answer of a model for code may repeat its prompt: the texts stay.
            texts = [answer[0].content for answer in answers]
            warnings["answers that both begin with the whole prompt"] += all(
                text.startswith(prompt[0].content) and prompt[0].content for text in texts
            )
        turns = PairTurns(prompt, *answers)
    return ParsedPair(turns, {})


def _open_transcript(row: Row) -> PairTurns | None:
    """Return a prompt that is a transcript up to the assistant's mark, as in Dahoas/rm-static, and both answers."""
    text, chosen, rejected = (row.value.get(key) for key in _TRL_KEYS)
    if not (isinstance(text, str) and isinstance(chosen, str) and isinstance(rejected, str)):
        return None
    start = text.rstrip(" ").removesuffix(ASSISTANT_MARK)
    if not text.startswith(_TRANSCRIPT) or not text.rstrip(" ").endswith(ASSISTANT_MARK):
        return None
    # The space behind the mark is at the end of the prompt, or at the beginning of the answers.
    gap = "" if text.endswith(HUMAN.gap) else HUMAN.gap
    return PairTurns(turns_in(start, HUMAN), *(answer_of(answer.removeprefix(gap)) for answer in (chosen, rejected)))


def _is_hh_rlhf(row: JsonObject) -> bool:
    """Return whether both answers are whole transcripts of HH-RLHF, without a prompt or margin of their own."""
    are_whole = all(isinstance(row.get(key), str) and row[key].startswith(_TRANSCRIPT) for key in SIDES)
    return are_whole and not {"prompt", MARGIN} & row.keys()


def _has_prompt_apart(row: JsonObject) -> bool:
    """Return whether a field beside two answers may be their prompt; transcripts hold it themselves."""
    sides = [row[key] for key in SIDES]
    is_marked = all(isinstance(side, str) and ASSISTANT_MARK in side for side in sides)
    are_texts = all(isinstance(side, str) for side in decoded_turns(sides))
    return not is_marked and (prompt_name(row) is not None or (are_texts and may_hold_prompt(row, SIDES)))


def _are_whole(row: JsonObject) -> bool:
    return are_conversations(decoded_turns([row.get(key) for key in SIDES]))


class OpenRlhfConfig(Config, frozen=True):
    """The names of the keys; ``prompt_key`` null means that the prompt is inside both answers."""

    prompt_key: str | None = None
    """The key of the prompt; null for whole conversations in both answers."""
    chosen_key: str = "chosen"
    """The key of the better answer."""
    rejected_key: str = "rejected"
    """The key of the worse answer."""
    texts: bool = False
    """Write texts, not lists of turns: for OpenRLHF without --apply_chat_template."""


def _openrlhf(config: OpenRlhfConfig) -> RowFormat:
    """Build the format of OpenRLHF's reward data. Raises ConfigError when two keys have one name.

    Written from ``openrlhf/datasets/reward_dataset.py`` of OpenRLHF's repository. Without ``prompt_key`` the two values
    are whole conversations; with it, the answers continue the prompt under that key. Lists of turns are written
    (``--apply_chat_template`` there), or by the settings texts. ``input_template`` belongs to the trainer, which puts
    the bare prompt into it when it reads: the rows never hold it. With the default keys the rows are TRL's, so none is
    recognised.

    Differs from: OpenRLHF, which never cuts the prompt off two whole texts; here it is cut as in ``trl``.
    """
    sides = (config.chosen_key, config.rejected_key)
    parts = sides if config.prompt_key is None else (config.prompt_key, *sides)
    keys = (*parts, MARGIN)
    if len(set(keys)) < len(keys):
        raise ConfigError(f"one name for several keys: {', '.join(keys)}", allowed="names that differ")

    def parse(row: Row, warnings: Counter[str]) -> ParsedPair:
        if not config.prompt_key:
            do = Advice("name the prompt's key: ", Remedy("prompt_key", NAME))
            return ParsedPair(implicit_turns(row, warnings, sides, do=do), {})
        roles = ("user", "assistant", "assistant")
        turns = PairTurns(*(field_turns(row, key, role=role) for key, role in zip(parts, roles, strict=True)))
        if len({type(row.value.get(key)) for key in parts}) > 1:
            problem = f"{', '.join(parts)} are neither all texts nor all lists of turns"
            raise RecordError(problem, where=row.place, do="give all three one form: OpenRLHF joins them as they are")
        return ParsedPair(turns, {})

    return PairFormat(
        kind="openrlhf",
        keys=keys,
        supports=carrying_pairs("margins", "answers of several turns"),
        matches=lambda row: False,
        parse=parse,
        row_of=PairLayout(config.prompt_key, sides, config.texts).row,
        turn_keys=parts,
        null_keys=(MARGIN,),
        has_margin=True,
        required=TEXT_ROWS if config.texts else None,
    ).format()


def _parse_hh_rlhf(row: Row, warnings: Counter[str]) -> ParsedPair:
    chosen, rejected = (_transcript(row, key) for key in SIDES)
    turns = cut_turns(chosen, rejected)
    warnings["transcripts that share no turn"] += not turns.prompt
    warnings["transcripts that end with a person's turn"] += any(side[-1].role == "user" for side in turns[1:])
    return ParsedPair(turns, {})


def _transcript(row: Row, key: str) -> tuple[Message, ...]:
    transcript = turns_in(row.text(key), HUMAN)
    if all(turn.role == HUMAN.before for turn in transcript):
        raise RecordError("no transcript", where=row.at(key), allowed=r"\n\nHuman: …\n\nAssistant: … (any turns)")
    return transcript


_HH_RLHF = PairFormat(
    kind="hh_rlhf",
    keys=SIDES,
    supports=carrying_pairs("answers of several turns"),
    matches=_is_hh_rlhf,
    parse=_parse_hh_rlhf,
).format()
r"""Two whole transcripts.

Written from the README of the repository anthropics/hh-rlhf and the look of its files: each turn begins after a blank
line with ``Human:`` or ``Assistant:``. The prompt is the turns that both transcripts share, the answers are the turns
after it: mostly one assistant turn, more where they part earlier. A transcript that ends with the person's turn is kept
so, and counted; two transcripts without a shared turn have an empty prompt, and are counted too. Text before the first
mark, which the data do not have, is read and written as a system turn.
"""


KINDS = {
    "trl": Plugin(
        TrlConfig,
        _trl,
        "TRL preference pairs: an explicit ``prompt``, or one inside both ``chosen`` and ``rejected``.",
    ),
    "openrlhf": Plugin(
        OpenRlhfConfig,
        _openrlhf,
        "OpenRLHF's reward data: two answers under keys of the user's choice, the prompt inside both or under its own"
        " key.",
    ),
    "hh_rlhf": without_settings(
        _HH_RLHF,
        "Anthropic's HH-RLHF: two whole transcripts of a person and an assistant, the better one under ``chosen``.",
    ),
}
