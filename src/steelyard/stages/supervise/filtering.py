"""The supervised cases and the manifest of what was dropped, written as they come, and the counts of both."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.core.types import Counts
from steelyard.curation.supervised import Batch, Rule, Supervised, supervise_cases
from steelyard.curation.supervision import KEPT, RULES
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import encode_case
from steelyard.io.progress import track
from steelyard.io.run_folder import Result


class Filtered(NamedTuple):
    """How many judgments were kept and dropped by which rule, what was noted, and the coverage of strict verdicts."""

    counts: Counts
    num_strict: int
    num_strict_kept: int
    num_prompts: int
    num_prompts_kept: int


def write_supervised(batches: Iterable[Batch], rule: Rule, result: Result) -> Filtered:
    """Write ``cases.jsonl`` and ``manifest.jsonl``; both take their names only when both are whole."""
    tally: Counter[str] = Counter()
    by_rule: Counter[str] = Counter()
    with atomic_write(result.path("manifest.jsonl")) as manifest, atomic_write(result.path("cases.jsonl")) as cases:
        for batch in track(batches, "supervise (batches of cases)"):
            found = supervise_cases(batch, rule)
            for case in found.cases:
                cases.write(encode_case(case))
            for one in found.dropped:
                manifest.write(msgspec.json.encode(one.as_row()) + b"\n")
            by_rule.update({RULES[code]: number for code, number in enumerate(np.bincount(found.rule).tolist())})
            tally.update(_tally(batch, found, rule))
    num_kept = by_rule.pop(RULES[KEPT], 0)
    noted = {name: number for name, number in tally.items() if number and not name.startswith("_")}
    counts = Counts(num_in=num_kept + by_rule.total(), num_used=num_kept, dropped=dict(+by_rule), noted=noted)
    return Filtered(counts, tally["_strict"], tally["_strict kept"], tally["_prompts"], tally["_prompts kept"])


def _tally(batch: Batch, found: Supervised, rule: Rule) -> dict[str, int]:
    verdicts, num_cases = batch.evidence.verdicts, len(batch.cases)
    given = np.bincount(verdicts.graph, minlength=num_cases)
    is_kept = found.rule == KEPT
    kept = np.bincount(verdicts.graph[is_kept], minlength=num_cases)
    strict_kept = is_kept & verdicts.is_strict
    return {
        "cases": num_cases,
        "cases without a supervised judgment": int((given == 0).sum()),
        "cases left without a judgment": int(((given > 0) & (kept == 0)).sum()),
        "judgments not supervised": sum(len(case.judgments) for case in batch.cases) - len(verdicts.graph),
        "pairs listed before, without a kept verdict": sum(
            len(case.pairs or ()) - len(now.pairs or ())
            for case, now in zip(batch.cases, found.cases, strict=True)
            if case.pairs is not None
        ),
        "unscored responses": sum(len(line.unscored) for line in batch.scores),
        "strict judgments with an unscored end": (
            int(np.isnan(batch.margin[strict_kept]).sum()) if rule.policy != "agree" else 0
        ),
        "_strict": int(verdicts.is_strict.sum()),
        "_strict kept": int(strict_kept.sum()),
        "_prompts": int((given > 0).sum()),
        "_prompts kept": len(np.unique(verdicts.graph[strict_kept])),
    }
