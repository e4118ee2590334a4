"""The parts of a case that a format may carry or lose: one list for the formats, their contract and their table."""

from collections import Counter
from collections.abc import Collection, Mapping

from steelyard.core.types import UNKNOWN_JUDGE, Case, Judgment, Rating
from steelyard.ranking.pairs import num_beyond_listed, pairs_of

AS_READ = "as_read"
"""The entry of a case's ``meta`` that says in which form its row was read."""

PARTS: Mapping[str, str | None] = {
    "system turns": None,
    "earlier turns": None,
    "language": None,
    "category": None,
    "source": None,
    "subset": None,
    "reference": None,
    "prompt meta": None,
    "prompt ids": None,
    "responses": None,
    "response ids": "responses",
    "authors": "responses",
    "answers of several turns": "responses",
    "response meta": "responses",
    "rankings": "responses",
    "ties": "rankings",
    "more than two responses": "responses",
    "listed pairs": "responses",
    "weights": "listed pairs",
    "margins": "listed pairs",
    "judgments": "responses",
    "judges": "judgments",
    "judgment details": "judgments",
    "ratings": "responses",
    "raters": "ratings",
    "rating details": "ratings",
    "case meta": None,
}
"""Every part, in the order of the table, with the part that it belongs to: it is lost together with that."""

_PAIRWISE = "system turns", "earlier turns", "prompt meta", "rankings", "listed pairs"


def carrying(*parts: str) -> frozenset[str]:
    """Return the parts that a format of responses carries. Asserts that each is a part."""
    return carrying_prompts("responses", *parts)


def carrying_prompts(*parts: str) -> frozenset[str]:
    """Return the parts that a format of prompts carries, which has no responses. Asserts that each is a part."""
    assert set(parts) <= PARTS.keys(), set(parts) - PARTS.keys()
    return frozenset(parts)


def carrying_pairs(*parts: str) -> frozenset[str]:
    """Return the parts that formats of one better and one worse answer a row carry, and these parts."""
    return carrying(*_PAIRWISE, *parts)


def has_pair_rows(supports: Collection[str]) -> bool:
    """Return whether a format has one better and one worse answer a row, without ids, verdicts or subsets."""
    others = {"more than two responses", "prompt ids", "judgments", "subset"}
    return "rankings" in supports and not others.intersection(supports)


def lost_parts(supports: Collection[str]) -> tuple[str, ...]:
    """Return the parts that a format does not carry, in order; details of a part that is lost itself are left out."""
    dropped = [part for part in PARTS if part not in supports]
    return tuple(part for part in dropped if PARTS[part] not in dropped)


def count_lost(case: Case, dropped: Counter[str], supports: Collection[str]) -> None:
    """Count, by name, the parts of a case that a format does not carry."""
    present = _present(case)
    for part in lost_parts(supports):
        if present[part]:
            dropped[part] += int(present[part])
    # A format that writes the ranking of a case brings back the pairs that its listed pairs leave out.
    if "rankings" in supports and "listed pairs" not in supports and case.pairs is not None:
        added = num_beyond_listed(case, pairs_of(case, "tiers"))
        dropped.update({"curation: pairs that the written ranking brings back": added} if added else {})


def _present(case: Case) -> Mapping[str, int]:
    """Return the number of each part."""
    prompt, pairs = case.prompt, case.pairs or ()
    num_system = sum(turn.role == "system" for turn in prompt.messages)
    return {
        "system turns": num_system,
        "earlier turns": max(0, len(prompt.messages) - num_system - 1),
        "language": prompt.language is not None,
        "category": bool(prompt.category),
        "source": prompt.source is not None,
        "subset": prompt.subset is not None,
        "reference": prompt.reference is not None,
        "prompt meta": bool(prompt.meta),
        "prompt ids": 1,
        "responses": len(case.responses),
        "response ids": len(case.responses),
        "authors": sum(response.author is not None for response in case.responses),
        "answers of several turns": sum(len(response.messages or ()) > 1 for response in case.responses),
        "response meta": sum(bool((response.meta or {}).keys() - {AS_READ}) for response in case.responses),
        "rankings": bool(case.ranking),
        "ties": sum(len(tier) * (len(tier) - 1) // 2 for tier in case.ranking or ()),
        "more than two responses": len(case.responses) > 2,
        "listed pairs": len(pairs),
        "weights": sum(pair.weight not in (None, 1) for pair in pairs),
        "margins": sum(pair.margin not in (None, 0) for pair in pairs),
        "judgments": len(case.judgments),
        "judges": sum((judgment.judge, judgment.kind) != (UNKNOWN_JUDGE, "human") for judgment in case.judgments),
        "judgment details": sum(map(_has_details, case.judgments)),
        "ratings": len(case.ratings),
        "raters": sum((rating.rater, rating.kind) != (UNKNOWN_JUDGE, "human") for rating in case.ratings),
        "rating details": sum(map(_has_details, case.ratings)),
        "case meta": bool(case.meta.keys() - {AS_READ}),
    }


def _has_details(evidence: Judgment | Rating) -> bool:
    is_judgment = isinstance(evidence, Judgment)
    details = (evidence.shown, evidence.batch, evidence.reason) if is_judgment else (evidence.spans,)
    return any(value is not None for value in (evidence.id, evidence.task, *details))
