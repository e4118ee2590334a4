"""The per-item results: a line a case, so that every number of the summary can be traced and formed again."""

from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.core.types import Scores
from steelyard.methods.measures.accuracy import count_unscored, exact_matches
from steelyard.stages.evaluate.judged import Judged, outcomes_by_case
from steelyard.stages.evaluate.questions import Questions, answers, label_of


def item_rows(
    questions: Questions, lines: Sequence[Scores], *, bench: str, judged: Judged | None = None
) -> Iterator[dict[str, Any]]:
    """A row a case, in order. ``exact_match`` is null where it is not counted, or open for want of a score.

    Of a model that was asked there is one more column, ``outcomes``: what became of each pair, by its two responses.
    """
    found = answers(questions, lines, None if judged is None else judged.values)
    said = None if judged is None else outcomes_by_case(questions, judged)
    num_pairs = found.num_pairs.tolist()
    sure = exact_matches(count_unscored(found, "wrong"), questions.rule)
    possible = exact_matches(count_unscored(found, "right"), questions.rule)
    for index, (case, line) in enumerate(zip(questions.cases, lines, strict=True)):
        # Of a judge the headline counts a missing verdict as wrong, so that its items are never open.
        is_known = questions.included[index] and (said is not None or sure[index] == possible[index])
        yield {
            "prompt": case.prompt.id,
            "language": case.prompt.language,
            "category": label_of(case).cell.category,
            "subset": case.prompt.subset,
            "bench": bench,
            "num_pairs": num_pairs[index],
            "num_correct": int(found.num_correct[index]),
            "num_tied": int(found.num_tied[index]),
            "num_unscored": int(found.num_unscored[index]),
            "exact_match": bool(sure[index]) if is_known else None,
            "scores": line.scores,
            "ranking": case.ranking,
        } | ({} if said is None else {"outcomes": said[index]})
