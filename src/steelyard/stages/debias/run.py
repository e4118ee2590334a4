"""One run of debiasing: two passes over the file, one to measure its pairs and one to write those that stay."""

from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Pair, Run
from steelyard.curation.debiasing import balanced
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import encode_case, read_cases
from steelyard.io.lines import check_readable
from steelyard.io.progress import log
from steelyard.io.run_folder import Result, read_run, result_folder
from steelyard.ranking.pairs import IndexedPair, listed_pairs, pairs_of
from steelyard.stages.debias.settings import Config, check_settings
from steelyard.stages.debias.summary import count, summarise
from steelyard.stages.debias.surveying import check_pairs, length_of, survey, with_scores

_DEFAULT = Config()


def debias(
    cases: Path, out: Path, config: Config = _DEFAULT, *, scores: Path | None = None, force: bool = False
) -> Run:
    """Write ``cases.jsonl``, in which ``pairs`` are those that stay; ``scores`` measure accuracy before and after.

    Raises ConfigError for a setting that could do nothing; EvidenceError for a file without pairs, or in which nothing
    would stay.
    """
    check_settings(config, with_scores=scores is not None)
    inputs = {"cases": cases, **({"scores": scores} if scores else {})}
    for path in inputs.values():
        check_readable(path)
    asked = msgspec.to_builtins(config)
    if config.tokenizer and Path(config.tokenizer).exists():
        inputs["tokenizer"] = Path(config.tokenizer)
        asked["tokenizer"] = Path(config.tokenizer).name
    with result_folder(out, "debias", config=asked, inputs=inputs, seed=config.seed, force=force) as result:
        if result.is_finished:
            log(f"{out} is finished already: equal inputs and settings")
            return read_run(out)
        found = survey(with_scores(cases, scores), config, length_of(config.tokenizer))
        check_pairs(found, config, where=str(cases))
        kept = balanced(found.side, found.group, found.priority)
        if not kept.any():
            raise EvidenceError(
                f"all {len(kept)} pairs are on one side: nothing would stay", where=str(cases), do="debias by another"
            )
        num_left = _write(result, cases, config, kept)
        result.counts = count(found, kept, num_left)
        result.summary = summarise(found, kept, config, with_scores=scores is not None)
    return read_run(out)


def _write(result: Result, cases: Path, config: Config, kept: NDArray[np.bool_]) -> int:
    """The second pass. Returns how many cases had pairs and are left without any."""
    stays = iter(kept.tolist())
    num_left = 0
    with atomic_write(result.path("cases.jsonl")) as file:
        for case in read_cases(cases):
            indexed = pairs_of(case, config.pairs)
            own = islice(stays, len(indexed))
            listed = tuple(pair for pair, stay in zip(_listed(case, indexed, config), own, strict=True) if stay)
            num_left += bool(indexed) and not listed
            file.write(encode_case(msgspec.structs.replace(case, pairs=listed)))
    return num_left


def _listed(case: Case, indexed: tuple[IndexedPair, ...], config: Config) -> tuple[Pair, ...]:
    """The pairs as a case lists them; those that it lists already stay to the letter."""
    if case.pairs is not None and config.pairs in (None, "listed"):
        return case.pairs
    return listed_pairs(case, indexed)
