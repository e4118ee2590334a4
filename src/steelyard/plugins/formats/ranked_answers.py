r"""Any number of answers with ranks: NeMo-RL's preference rows and Nectar.

NeMo-RL is written from ``docs/guides/rm.md`` and ``docs/guides/dpo.md`` of NVIDIA-NeMo/RL: the lowest rank is the best,
and a completion is a list of turns. Equal ranks are a tie. The format holds any number of completions, its trainers
(``preference_preprocessor``) end with an error at any row but two completions of different ranks: such rows are
counted, and ``pairs`` writes a row for each pair. ``task_name`` names the data set, and is the prompt's source here.
The binary form (``prompt``, ``chosen``, ``rejected``, under keys of choice) looks like TRL's and OpenRLHF's: ``trl``
reads and writes it, ``openrlhf`` does so under other keys.

Nectar is written from the card of the data set berkeley-nest/Nectar: ``prompt`` is ``\n\nHuman: …\n\nAssistant: ``, an
answer has ``answer``, ``model`` and ``rank`` (1 is best), ``source`` lists where prompt and answers came from. The card
calls the number of answers ``num_response`` and the files ``num_responses``: either is read. Answers of one rank are
one tier.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.core.config import Config
from steelyard.core.errors import RecordError
from steelyard.core.plugins import Plugin, without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import Case, JsonObject, Message, Ranking, Response
from steelyard.curation.format_support import carrying, carrying_pairs, count_lost
from steelyard.plugins.formats._pairs import pair_rows, rank_of, tiers_of
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
    are_objects,
    other_meta,
    present,
    without_keys,
)
from steelyard.plugins.formats._turns import (
    HUMAN,
    answer_turns,
    as_turns,
    count_other_keys,
    turns_in,
    turns_of,
)

_COMPLETION_KEYS = ("rank", "completion")
_ANSWER_KEYS = ("answer", "model", "rank")
_NUMBERS = ("turns", "num_responses", "num_response")
_END = "\n\nAssistant: "


# NeMo-RL


def _parse_completions(reader: CaseReader) -> Case:
    row, items = reader.row, reader.row.items("completions")
    if not items:
        raise RecordError("no completions", where=row.at("completions"))
    completions = [_completion(row, index, item, reader.warnings) for index, item in enumerate(items)]
    answers, ranks = zip(*completions, strict=True)
    responses = reader.responses(answers, metas=[without_keys(item, _COMPLETION_KEYS) for item in items])
    names = [response.id for response in responses]
    ranking = _tiers(names, ranks)
    return Case(
        prompt=reader.prompt(reader.turns("context", "user"), source=row.optional_text("task_name")),
        responses=responses,
        ranking=ranking,
        meta=reader.meta(ranks=list(ranks) if list(ranks) != _tier_numbers(names, ranking) else None),
    )


def _completion(row: Row, index: int, item: Any, warnings: Counter[str]) -> tuple[tuple[Message, ...], float]:
    place = row.at(f"completions[{index}]")
    if not isinstance(item, dict) or not is_number(item.get("rank")):
        allowed = '{"rank": 0, "completion": …}'
        raise RecordError("a completion without a number as its rank", where=place, allowed=allowed)
    count_other_keys(item.get("completion"), warnings)
    if not isinstance(item.get("completion"), list):
        allowed = '[{"role": …, "content": …}]'
        raise RecordError("a completion that is not a list of turns", where=place, allowed=allowed)
    return turns_of(item["completion"], place, f"completions[{index}].completion", role="assistant"), item["rank"]


def _tiers(names: Sequence[str], ranks: Sequence[float]) -> Ranking:
    return tiers_of(dict(zip(names, ranks, strict=True)))


def _tier_numbers(names: Sequence[str], ranking: Ranking) -> list[float]:
    """Return the number of each answer's tier, from 0."""
    ranks = rank_of(ranking, first=0)
    return [ranks[name] for name in names]


def _completion_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row; responses without a rank are left out and counted."""
    count_lost(case, dropped, _NEMO_RL.supports)
    ranked = {name for tier in case.ranking or () for name in tier}
    answers = [response for response in case.responses if response.id in ranked]
    dropped["unranked responses"] += len(case.responses) - len(answers)
    if not answers:
        dropped["prompts without a ranking"] += 1
        return
    names = [response.id for response in answers]
    ranks = _tier_numbers(names, case.ranking or ())
    read_ranks = form.get("ranks", ranks)
    ranks = read_ranks if len(read_ranks) == len(names) and _tiers(names, read_ranks) == case.ranking else ranks
    dropped["rows that NeMo-RL's trainers refuse, for they take two answers of different ranks (pairs=true)"] += (
        len(answers) != 2 or len({*ranks}) < 2
    )
    yield _completion_row(case, answers, ranks, dropped)


def _completion_row(
    case: Case, answers: Sequence[Response], ranks: Sequence[float], dropped: Counter[str]
) -> JsonObject:
    completions = []
    for response, rank in zip(answers, ranks, strict=True):
        fields = {"rank": rank, "completion": as_turns(answer_turns(response))}
        completions.append(other_meta(response.meta, fields, dropped) | fields)
    context = as_turns(case.prompt.messages)
    return present({"context": context, "completions": completions, "task_name": case.prompt.source})


class NemoRlConfig(Config, frozen=True):
    """The form of the rows."""

    pairs: bool = False
    """Write a row for each pair of a better and a worse answer: NeMo-RL's trainers take no other rows."""


def _nemo_rl(config: NemoRlConfig) -> RowFormat:
    """Build the format of NeMo-RL's rows."""
    if not config.pairs:
        return _NEMO_RL
    supports = carrying_pairs("source", "answers of several turns", "response meta")

    def rows_of(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
        for pair in pair_rows(case, dropped, supports):
            yield _completion_row(case, (pair.better, pair.worse), (0, 1), dropped)

    return _NEMO_RL._replace(supports=supports, rows_of=rows_of)


_NEMO_RL = RowFormat(
    kind="nemo_rl",
    keys=("context", "completions", "task_name"),
    supports=carrying(
        "system turns", "earlier turns", "source", "prompt meta", "answers of several turns", "response meta",
        "rankings", "ties", "more than two responses",
    ),
    matches=lambda row: isinstance(row.get("context"), list) and are_objects(row.get("completions"), _COMPLETION_KEYS),
    parse=_parse_completions,
    rows_of=_completion_rows,
    null_keys=("task_name",),
    turn_keys=("context",),
)  # fmt: skip


# Nectar


def _parse_answers(reader: CaseReader) -> Case:
    row = reader.row
    text = row.text("prompt")
    end = next((end for end in (_END, _END.rstrip(" ")) if text.endswith(end)), "")
    turns = turns_in(text.removesuffix(end), HUMAN)
    items = row.items("answers")
    for place, item in enumerate(items):
        where = row.at(f"answers[{place}]")
        if not isinstance(item, dict) or not isinstance(item.get("answer"), str):
            raise RecordError("an answer without a text", where=where, allowed='{"answer": …, "model": …, "rank": …}')
        if not (item.get("model") is None or isinstance(item["model"], str)):
            raise RecordError("a model that is not a name", where=where, allowed="model: a text")
        if not (item.get("rank") is None or is_number(item["rank"])):
            raise RecordError("a rank that is not a number", where=where, allowed="rank: a number, 1 is best")
    responses = reader.responses(
        [item["answer"] for item in items],
        authors=[item.get("model") for item in items],
        metas=[without_keys(item, _ANSWER_KEYS) for item in items],
    )
    ranked = zip(responses, items, strict=True)
    ranks = {response.id: item["rank"] for response, item in ranked if item.get("rank") is not None}
    sources = row.value.get("source")
    names: list[Any] = sources if isinstance(sources, list) else [sources]
    source = ", ".join(names) if names and all(isinstance(name, str) for name in names) else None
    prompt = reader.prompt(turns, source=source)
    return Case(prompt=prompt, responses=responses, ranking=tiers_of(ranks) or None)


_NECTAR = RowFormat(
    kind="nectar",
    keys=("prompt", "answers", *_NUMBERS, "source"),
    supports=carrying(
        "system turns", "earlier turns", "source", "prompt meta", "authors", "response meta", "rankings", "ties",
        "more than two responses",
    ),
    matches=lambda row: (
        isinstance(row.get("prompt"), str)
        and bool(row.get("answers"))
        and are_objects(row["answers"], ("answer", "rank"))
    ),
    parse=_parse_answers,
)  # fmt: skip

KINDS = {
    "nectar": without_settings(
        _NECTAR,
        "Nectar: a prompt as a transcript that ends where the assistant is to answer, and seven answers ranked by"
        " GPT-4.",
    ),
    "nemo_rl": Plugin(
        NemoRlConfig,
        _nemo_rl,
        "NeMo-RL's preference rows: a context and any number of completions, each with its rank.",
    ),
}
