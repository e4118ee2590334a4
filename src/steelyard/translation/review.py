"""Items that people review: all damaged translations and some others, as cases of two kinds of tasks.

Translators get each text of the source with its translation (``translation_quality``); native speakers get the
translated item with its two responses (``native_check``).
"""

from collections.abc import Sequence

import msgspec

from steelyard.core.checks import content_id
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.translation.damage_kinds import DamageFinding
from steelyard.translation.items import item_texts


def review_rank(case: Case, seed: int) -> str:
    """Return the place of an undamaged item in the order in which items are drawn, the same in all languages."""
    return content_id(f"{seed} review {case.prompt.id}")


def native_case(target: Case) -> Case | None:
    """Return the case for native speakers: a translated item of two responses with a label; null for any other."""
    has_label = target.ranking is not None or target.pairs is not None
    return target if len(target.responses) == 2 and has_label else None


def quality_cases(source: Case, target: Case, findings: Sequence[DamageFinding], language: str) -> list[Case]:
    """Return a case for translators of each text with a finding; of an undamaged item, of every text that was changed.

    There is nothing to rate where a text is its source's, as code is, and no check objects.
    """
    places = {finding.place for finding in findings}
    is_whole = not places or "responses" in places
    return [
        Case(
            prompt=Prompt(
                id=f"{source.prompt.id} {language} {before.name}",
                messages=(Message(role="user", content=before.text),),
                language=source.prompt.language,
                meta={"answer_language": target.prompt.language, "item": source.prompt.id},
            ),
            responses=(Response(id="translation", text=after.text),),
            meta={"findings": [msgspec.to_builtins(finding) for finding in findings]} if findings else {},
        )
        for before, after in zip(item_texts(source), item_texts(target), strict=True)
        if (is_whole and before.text != after.text) or before.place in places
    ]
