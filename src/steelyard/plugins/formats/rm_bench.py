"""RM-Bench rows: a prompt, three right and three wrong answers in the same three styles, and a domain.

Written from the description of the data in the repository THU-KEG/RM-Bench: the place in ``chosen`` and ``rejected``
is the style: concise, detailed in plain text, detailed in Markdown. All nine pairs of one right and one wrong answer
count in its accuracy matrix (rows are the style of the right one): the diagonal is its normal accuracy, the pairs
whose wrong answer has the plainer style its easy accuracy, the others its hard accuracy. The style stands in each
response's ``meta``; the domain is the prompt's subset, and a case's id is ``DOMAIN/ID``. The files of one domain name
none, but the source of each prompt (``subset``): that stays a key of the row, and the id is ``SUBSET/ID``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Response
from steelyard.plugins.formats._fields import (
    PromptIds,
    as_read,
    count_other_keys,
    form_of,
    nulls_of,
    rest,
    text_field,
    text_or_list,
    turn_keys,
    turns_of,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._pairwise import answer_text
from steelyard.plugins.formats._parts import carrying, count_lost
from steelyard.plugins.formats._sides import (
    SIDES,
    SubsetIds,
    absent_keys,
    sides_of,
    texts_field,
)

_KIND = "rm_bench"
_KEYS = ("id", "prompt", *SIDES, "domain")
STYLES = ("concise", "detailed", "markdown")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class RmBench:
    """One row a prompt, of three answers on each side."""

    keys = _KEYS
    carries = carrying(
        "system turns", "earlier turns", "subset", "prompt meta", "rankings", "ties", "more than two responses"
    )

    def recognises(self, row: dict[str, Any]) -> bool:
        """A domain or a subset, three texts on each side, and none of the numbers of RewardBench 2."""
        sides = [row.get(side) for side in SIDES]
        is_named = "prompt" in row and ("domain" in row or ("subset" in row and "num_correct" not in row))
        return is_named and all(
            isinstance(side, list) and len(side) == len(STYLES) and all(isinstance(text, str) for text in side)
            for side in sides
        )

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers of three."""
        ids = PromptIds(noted)
        for row in rows:
            texts = {side: texts_field(row, side) for side in SIDES}
            for side, given in texts.items():
                if len(given) != len(STYLES):
                    where = row.place._replace(path=side)
                    raise RecordError(f"{len(given)} answers in {side!r}", where=where, allowed="three, one a style")
            has_domain = "domain" in row.value or "subset" not in row.value
            domain, given_id = text_field(row, "domain" if has_domain else "subset"), row.value.get("id")
            count_other_keys(row.value.get("prompt"), ("role", "content"), noted)
            messages = turns_of(row.value.get("prompt"), row.place, "prompt", role="user")
            name = ids.made(row) if given_id is None else ids.given(f"{domain}/{given_id}", row)
            yield Case(
                prompt=with_prompt(messages, id=name, subset=domain if has_domain else None, meta=rest(row, _KEYS)),
                responses=tuple(
                    Response(id=f"{side}-{style}", text=text, meta={"style": style})
                    for side in SIDES
                    for style, text in zip(STYLES, texts[side], strict=True)
                ),
                ranking=tuple(tuple(f"{side}-{style}" for style in STYLES) for side in SIDES),
                meta=as_read(
                    _KIND,
                    id=given_id,
                    absent=absent_keys(row, ("id", "domain")),
                    null=nulls_of(row, ("id",)),
                    turns=turn_keys(row, ("prompt",)),
                ),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a case of three against three, each side by style where each of its answers has its own."""
        ids = SubsetIds(lost)
        for case in cases:
            count_lost(_without_styles(case), lost, self.carries)
            sides = sides_of(case, lost, num_better=len(STYLES), num_worse=len(STYLES))
            if not sides.better:
                continue
            form, domain = form_of(case, _KIND), case.prompt.subset or ""
            row = {
                "id": ids.take(form.get("id", case.prompt.id), domain),
                "prompt": text_or_list(case.prompt.messages, "user", as_list="prompt" in form.get("turns", ())),
                **{
                    key: [answer_text(response, lost) for response in _by_style(side, lost)]
                    for key, side in zip(SIDES, sides, strict=True)
                },
                "domain": domain,
            }
            absent = [key for key in form.get("absent", ()) if key == "id" or not row[key]]
            row = {key: value for key, value in row.items() if key not in absent}
            yield with_meta(row | dict.fromkeys(form.get("null", ())), case, _KEYS, lost)


def build(config: Config) -> RmBench:
    """The format."""
    return RmBench()


def _style(response: Response) -> Any:
    return (response.meta or {}).get("style")


def _by_style(side: tuple[Response, ...], lost: Counter[str]) -> list[Response]:
    by_style = {_style(response): response for response in side if isinstance(_style(response), str)}
    if by_style.keys() == set(STYLES):
        return [by_style[style] for style in STYLES]
    lost["sides without the three styles, in the order of the ranking"] += 1
    return list(side)


def _without_styles(case: Case) -> Case:
    """The case without what the places of its answers say: only a further ``meta`` is lost."""

    def bare(response: Response) -> Response:
        meta = {key: value for key, value in (response.meta or {}).items() if key != "style" or value not in STYLES}
        return replace(response, meta=meta or None)

    return replace(case, responses=tuple(bare(response) for response in case.responses))
