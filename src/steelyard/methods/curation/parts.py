"""The part of a case's evidence that is of one kind: what people said apart from what models said."""

from collections import Counter

from msgspec.structs import replace

from steelyard.core.types import Case, Kind


def only_kind(case: Case, kind: Kind, noted: Counter[str]) -> Case:
    """The case with the judgments and ratings of the kind; its prompt and all of its responses stay.

    A ranking or a listed pair does not say what it rests on. Both are kept only where the case has evidence and all of
    it is of the kind; where some is of another kind, or there is none, they may rest on what is left out. What is left
    out is counted in ``noted``, and so are cases that are left without anything.
    """
    judgments = tuple(one for one in case.judgments if one.kind == kind)
    ratings = tuple(one for one in case.ratings if one.kind == kind)
    num_other = len(case.judgments) - len(judgments) + len(case.ratings) - len(ratings)
    is_of_kind = bool(judgments or ratings) and not num_other
    kept = replace(
        case,
        judgments=judgments,
        ratings=ratings,
        ranking=case.ranking if is_of_kind else None,
        pairs=case.pairs if is_of_kind else None,
    )
    facts = {
        "judgments of other kinds, left out": len(case.judgments) - len(judgments),
        "ratings of other kinds, left out": len(case.ratings) - len(ratings),
        "rankings on other or unsaid evidence, left out": case.ranking is not None and not is_of_kind,
        "listed pairs on other or unsaid evidence, left out": 0 if is_of_kind else len(case.pairs or ()),
        "cases without evidence of the kind": not judgments and not ratings,
    }
    for name, number in facts.items():
        noted[name] += int(number)
    return kept
