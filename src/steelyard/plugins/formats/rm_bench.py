"""RM-Bench rows: a prompt, three right and three wrong answers in the same three styles, and a domain.

Written from the description of the data in the repository THU-KEG/RM-Bench: the place in ``chosen`` and ``rejected``
is the style: concise, detailed in plain text, detailed in Markdown. All nine pairs of one right and one wrong answer
count in its accuracy matrix (rows are the style of the right one): the diagonal is its normal accuracy, the pairs
whose wrong answer has the plainer style its easy accuracy, the others its hard accuracy. The style is in each
response's ``meta``; the domain is the prompt's subset, and a case's id is ``DOMAIN/ID``. The files of one domain name
none, but the source of each prompt (``subset``): that stays a key of the row, and the id is ``SUBSET/ID``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Response
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_text,
    as_read,
    count_other_keys,
    field_turns,
    form_of,
    text_or_list,
    turn_keys,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._pair_rows import SIDES
from steelyard.plugins.formats._pair_sides import SubsetIds, are_texts, sides_of, texts_field

_KIND = "rm_bench"
_KEYS = ("id", "prompt", *SIDES, "domain")
STYLES = ("concise", "detailed", "markdown")


class RmBench:
    """One row a prompt, of three answers on each side."""

    keys = _KEYS
    supports = carrying(
        "system turns", "earlier turns", "subset", "prompt meta", "rankings", "ties", "more than two responses"
    )

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has a domain or a subset, and three texts on each side."""
        sides = [row.get(side) for side in SIDES]
        is_named = "prompt" in row and ("domain" in row or ("subset" in row and "num_correct" not in row))
        return is_named and all(are_texts(side) and len(side or ()) == len(STYLES) for side in sides)

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases of two tiers of three."""
        ids = PromptIds(warnings)
        for row in rows:
            texts = {side: texts_field(row, side) for side in SIDES}
            for side, answers in texts.items():
                if len(answers) != len(STYLES):
                    where = row.at(side)
                    raise RecordError(f"{len(answers)} answers in {side!r}", where=where, allowed="three, one a style")
            has_domain = "domain" in row.value or "subset" not in row.value
            domain, given_id = row.text("domain" if has_domain else "subset"), row.value.get("id")
            count_other_keys(row.value.get("prompt"), warnings)
            messages = field_turns(row, "prompt", role="user")
            name = ids.take(row, None if given_id is None else f"{domain}/{given_id}")
            yield Case(
                prompt=with_prompt(messages, id=name, subset=domain if has_domain else None, meta=row.others(_KEYS)),
                responses=tuple(
                    Response(id=f"{side}-{style}", text=text, meta={"style": style})
                    for side in SIDES
                    for style, text in zip(STYLES, texts[side], strict=True)
                ),
                ranking=tuple(tuple(f"{side}-{style}" for style in STYLES) for side in SIDES),
                meta=as_read(
                    _KIND,
                    id=given_id,
                    absent=row.absent(("id", "domain")),
                    null=row.nulls(("id",)),
                    turns=turn_keys(row, ("prompt",)),
                ),
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row a case of three against three, each side by style where each of its answers has its own."""
        ids = SubsetIds(dropped)
        for case in cases:
            count_lost(_without_styles(case), dropped, self.supports)
            sides = sides_of(case, dropped, num_better=len(STYLES), num_worse=len(STYLES))
            if not sides.better:
                continue
            form, domain = form_of(case, _KIND), case.prompt.subset or ""
            row = {
                "id": ids.take(form.get("id", case.prompt.id), domain),
                "prompt": text_or_list(case.prompt.messages, "user", as_list="prompt" in form.get("turns", ())),
                **{
                    key: [answer_text(response, dropped) for response in _by_style(side, dropped)]
                    for key, side in zip(SIDES, sides, strict=True)
                },
                "domain": domain,
            }
            absent = [key for key in form.get("absent", ()) if key == "id" or not row[key]]
            row = {key: value for key, value in row.items() if key not in absent}
            yield with_meta(row | dict.fromkeys(form.get("null", ())), case, _KEYS, dropped)


KINDS = {"rm_bench": without_settings(RmBench(), __doc__)}


def _style(response: Response) -> Any:
    return (response.meta or {}).get("style")


def _by_style(side: tuple[Response, ...], dropped: Counter[str]) -> list[Response]:
    by_style = {_style(response): response for response in side if isinstance(_style(response), str)}
    if by_style.keys() == set(STYLES):
        return [by_style[style] for style in STYLES]
    dropped["sides without the three styles, in the order of the ranking"] += 1
    return list(side)


def _without_styles(case: Case) -> Case:
    """Return the case without what the places of its answers say: only a further ``meta`` is lost."""

    def bare(response: Response) -> Response:
        meta = {key: value for key, value in (response.meta or {}).items() if key != "style" or value not in STYLES}
        return replace(response, meta=meta or None)

    return replace(case, responses=tuple(bare(response) for response in case.responses))
