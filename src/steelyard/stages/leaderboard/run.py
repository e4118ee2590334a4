"""One leaderboard from run folders to a page, a table and ``run.json``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Counts, Run
from steelyard.evaluation.alike import Differing, bench_hashes, check_alike
from steelyard.evaluation.evaluations import Beside, beside, has_headline, read_evaluation, resample_ids
from steelyard.evaluation.headlines import ranking_of
from steelyard.evaluation.leaderboard_columns import HALF_POINTS, columns_of, has_half_points
from steelyard.evaluation.measures.coverage import unlike_coverage
from steelyard.io.atomic import atomic_write
from steelyard.io.progress import log
from steelyard.io.run_folder import read_run, result_folder
from steelyard.report.leaderboard import as_csv, as_markdown
from steelyard.report.leaderboard_page import as_page
from steelyard.statistics.headline import Headline
from steelyard.statistics.standings import Standings, standings


class Config(BaseConfig, frozen=True):
    """``num_resamples``: how often prompts are redrawn for ranks. ``allow_differing`` names what need not be equal:
    ``self_test`` (one was evaluated without it), and within a family of models ``dtype``, ``max_length``,
    ``over_length``, or of one model its ``template``. It stands in the table.
    """

    num_resamples: Positive = 10_000
    """The number of bootstrap resamples of prompts."""
    allow_differing: tuple[Differing, ...] = ()
    """What may differ between evaluations; it is shown in the table."""
    seed: int = 0
    """The seed of the resamples."""


_DEFAULT = Config()
_MOST_TOLD = 3


def leaderboard(runs: Sequence[Path], out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run:
    """Rank the evaluations in ``runs`` by the headline of their bench in one table, as page, CSV and Markdown.

    Evaluations without a headline are listed apart with what they lack; where all are of the same part of a bench, they
    are ranked by accuracy on that part. Raises EvidenceError for less than two to rank, for one folder twice, and for
    unlike protocols, naming everything that differs.
    """
    records = [read_evaluation(folder) for folder in runs]
    if len({folder.resolve() for folder in runs}) < len(runs):
        raise EvidenceError("one folder is named twice", do="name each --out folder of `steelyard evaluate` once")
    names = resample_ids(runs, records)
    lacking = {name: why for name, run in zip(names, records, strict=True) if (why := what_lacks(run)) is not None}
    if all(map(_is_part, records)):
        lacking = {}
    differing = check_alike(dict(zip(names, records, strict=True)), config.allow_differing, apart=lacking)
    whole = [index for index, name in enumerate(names) if name not in lacking]
    if len(whole) < 2:
        told = "; ".join(f"{name}: {why}" for name, why in lacking.items())
        raise EvidenceError(
            f"{len(whole)} of {len(runs)} evaluations have a headline{f' ({told})' if told else ''}",
            do="name two or more finished --out folders of `steelyard evaluate`",
        )
    together = beside([runs[index] for index in whole], [records[index] for index in whole])
    inputs = {f"run.{number}": folder / "run.json" for number, folder in enumerate(runs, 1)}
    with result_folder(out, "leaderboard", config=config, inputs=inputs, seed=config.seed, force=force) as result:
        if result.is_finished:
            log(f"{out} is finished already: equal inputs and settings")
            return read_run(out)
        tables = [one.statistics for one in together.evaluated]
        headline = ranking_of(together)
        found = standings(
            together.layout,
            tables,
            headline.formula,
            num_resamples=config.num_resamples,
            seed=config.seed,
            unscored=[one.unscored for one in together.evaluated],
        )
        summary = _summary(together, found, [names[index] for index in whole], headline)
        covered = {names[index]: records[index].summary.get("coverage") for index in whole}
        summary |= {"differing": differing, "unlike_coverage": unlike_coverage(covered)}
        summary |= {"partial": [{"name": name, "why": why} for name, why in lacking.items()]}
        for ending, text in (("html", as_page(summary)), ("csv", as_csv(summary)), ("md", as_markdown(summary))):
            with atomic_write(result.path(f"leaderboard.{ending}")) as file:
                file.write(text.encode())
        result.summary = summary
        dropped = {"no headline": len(lacking)} if lacking else {}
        result.counts = Counts(
            num_in=len(runs), num_used=len(whole), dropped=dropped, noted={"prompts": len(tables[0])}
        )
    return read_run(out)


def what_lacks(run: Run) -> str | None:
    """Why the evaluation has no headline, or null where it has one."""
    if not has_headline(run):
        return "most pairs have no score or verdict"
    if "headline" not in run.summary:
        return "an earlier version evaluated it: evaluate it again"
    missing: Mapping[str, str] = run.summary.get("missing") or {}
    told = [f"{name} ({why})" for name, why in missing.items()]
    more = f" and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    return ", ".join(told[:_MOST_TOLD]) + more or None


def _is_part(run: Run) -> bool:
    """Whether nothing but parts of the bench keeps the headline away."""
    return has_headline(run) and "headline" in run.summary and bool(run.summary.get("missing"))


def _summary(together: Beside, found: Standings, names: Sequence[str], headline: Headline) -> dict[str, Any]:
    first = together.evaluated[0].run
    rows = [_row(together, found, index, name) for index, name in enumerate(names)]
    rows.sort(key=lambda row: -row["value"])
    every = [columns_of(one.run.summary) for one in together.evaluated]
    seen = dict.fromkeys(key for one in every for key, own in one.items() if own["value"] is not None)
    if not any(has_half_points(one.run.summary) for one in together.evaluated):
        # Without a tie or a failure anywhere these columns would repeat the strict ones.
        seen = {key: None for key in seen if key[0] != HALF_POINTS}
    return {
        "bench": first.summary["bench"],
        "bench_sha256": bench_hashes(first),
        "num_prompts": len(together.evaluated[0].statistics),
        "ranked_by": headline.name,
        "about": headline.about,
        "missing": dict(headline.missing),
        "correction": "Holm, over all pairs of models",
        "columns": [{"group": group, "name": name} for group, name in seen],
        "rows": rows,
        "comparisons": [
            {
                "first": names[one],
                "second": names[other],
                "p_corrected": value,
                "p_bounded": found.p_bounded[one, other],
            }
            for (one, other), value in found.p_corrected.items()
        ],
    }


def _row(together: Beside, found: Standings, index: int, name: str) -> dict[str, Any]:
    evaluated = together.evaluated[index]
    summary = evaluated.run.summary
    protocol = summary.get("protocol") or {}
    return {
        "name": name,
        "folder": str(evaluated.folder),
        "kind": evaluated.run.config.get("model_kind") or "scores",
        "value": float(found.value[index]),
        "best_rank": found.ranks[index][0],
        "worst_rank": found.ranks[index][1],
        "rank_shares": found.rank_shares[index].tolist(),
        "group": found.groups[index],
        "self_test": summary.get("self_test", {}).get("state", "off"),
        "coverage": summary.get("coverage"),
        "protocol": {key: protocol.get(key) for key in ("dtype", "max_length", "over_length", "template_hash")},
        "numbers": [
            {"group": group, "name": title, **{key: own[key] for key in ("value", "low", "high", "n")}}
            for (group, title), own in columns_of(summary).items()
        ],
    }
