"""A filter by length of a given size: the strict verdicts whose two responses differ least in length.

    python studies/closest_in_length.py CASES AS_MANY_AS OUT

A control for distant supervision: as many strict verdicts of CASES are kept as AS_MANY_AS has, the least difference in
code points first, of equal ones those that stand first. OUT is a case file, ranked again, with the pairs kept.
"""

from pathlib import Path

import numpy as np
import typer

from steelyard.core.text import num_characters
from steelyard.core.types import Scores
from steelyard.curation.supervised import ScoredBatch, supervise_cases
from steelyard.curation.supervision import SUPERVISED, SupervisionRule
from steelyard.io.cases import read_cases, write_cases
from steelyard.ranking.judgment_table import judgment_table


def main(cases: Path, as_many_as: Path, out: Path) -> None:
    """Write the cases with the kept verdicts, and print how many were kept."""
    wanted = int(judgment_table(tuple(read_cases(as_many_as)), SUPERVISED).verdicts.is_strict.sum())
    given = tuple(read_cases(cases))
    table = judgment_table(given, SUPERVISED)
    scores = [
        Scores(
            prompt=case.prompt.id,
            language=case.prompt.language,
            scores={response.id: float(num_characters(response)) for response in case.responses},
        )
        for case in given
    ]
    batch = ScoredBatch(given, tuple(scores), table, np.zeros(len(table.verdicts.is_strict)))
    lengths = np.array([num_characters(response) for case in given for response in case.responses])
    verdicts = table.verdicts
    first = np.cumsum([0, *(len(case.responses) for case in given)])[verdicts.graph]
    difference = np.abs(lengths[first + verdicts.left] - lengths[first + verdicts.right])
    strict = np.flatnonzero(verdicts.is_strict)
    order = strict[np.argsort(difference[strict], kind="stable")]
    # A margin of 1 is kept, one of 0 is not.
    margin = np.zeros(len(difference))
    margin[order[:wanted]] = 1.0
    supervised = supervise_cases(batch._replace(margin=margin), SupervisionRule(min_margin=1.0))
    write_cases(out, supervised.cases)
    longest = int(difference[order[:wanted]].max())
    pairs = sum(len(case.pairs or ()) for case in supervised.cases)
    print(f"{wanted} of {len(strict)} strict verdicts kept, {pairs} pairs; at most {longest} characters apart")


if __name__ == "__main__":
    typer.run(main)
