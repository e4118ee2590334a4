"""The verb `languages`: one evaluation of parallel items, told by language, family, script and resource."""

import tomllib
from importlib.resources import files
from pathlib import Path

import msgspec
import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, FileError, choices
from steelyard.core.types import Counts, Run
from steelyard.files.items import Item, read_items
from steelyard.files.results import read_run, result_folder
from steelyard.files.talk import say
from steelyard.methods.measures.languages import Kin, Parallel, languages_report
from steelyard.methods.measures.strata import Cell, Label


class Config(BaseConfig, frozen=True):
    """``english`` is the language that the others are held against; null takes the one that is English."""

    english: str | None = None
    num_resamples: int = 1000
    seed: int = 0


_DEFAULT = Config()


class _Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    codes: tuple[str, ...]
    script: str
    family: str
    resource: str | None = None
    resource_class: int | None = None


def languages(evaluated: Path, out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run:
    """Tell an evaluation by language. Raises EvidenceError where it has one language alone, or no English."""
    run = read_run(evaluated)
    if run.stage != "evaluate":
        raise FileError(f"a run of {run.stage}", where=str(evaluated), allowed="the --out folder of `evaluate`")
    inputs = {"run": evaluated / "run.json", "items": evaluated / "items.jsonl"}
    with result_folder(out, "languages", config=config, inputs=inputs, seed=config.seed, force=force) as result:
        if result.is_finished:
            say(f"{out} is finished already: equal inputs and settings")
            return read_run(out)
        items = [one for one in read_items(evaluated) if one.exact_match is not None]
        known = _known()
        present = {one.language for one in items if one.language is not None}
        english = _english(present, config.english, known, where=str(evaluated))
        report = languages_report(
            _parallel([one for one in items if one.language is not None]),
            english,
            {code: kin for code, (_, kin) in known.items()},
            num_resamples=config.num_resamples,
            seed=config.seed,
        )
        unnamed = sum(one.language is None for one in items)
        result.counts = Counts(
            num_in=len(items), num_used=len(items) - unnamed, dropped={"no language": unnamed} if unnamed else {}
        )
        result.summary = {"model": run.summary["model"], "bench": run.summary["bench"], **report}
    return read_run(out)


def _known() -> dict[str, tuple[str, Kin]]:
    """Every code, with the language's name and kin."""
    table = tomllib.loads(files("steelyard").joinpath("data/languages.toml").read_text("utf-8"))
    found: dict[str, tuple[str, Kin]] = {}
    for name, row in table.items():
        own = msgspec.convert(row, _Language)
        kin = Kin(own.family, own.script, own.resource, own.resource_class)
        found |= dict.fromkeys(own.codes, (name, kin))
    return found


def _english(present: set[str], asked: str | None, known: dict[str, tuple[str, Kin]], *, where: str) -> str:
    if len(present) < 2:
        found = f"one language alone ({', '.join(present)})" if present else "no item has a language"
        raise EvidenceError(found, where=where, do="evaluate parallel items in several languages")
    if asked is not None:
        if asked not in present:
            raise EvidenceError(f"no item is in {asked!r}", where=where, allowed=choices(asked, present))
        return asked
    named = sorted(code for code in present if known.get(code, ("", Kin()))[0] == "english")
    if len(named) != 1:
        found = f"{len(named)} languages are English" if named else "none of the languages is English"
        raise EvidenceError(found, where=where, allowed=", ".join(sorted(present)), do="say --set english=CODE")
    return named[0]


def _parallel(items: list[Item]) -> Parallel:
    labels = [Label(one.prompt, Cell(one.category, one.subset, one.language)) for one in items]
    rows = [(one.num_pairs, one.num_correct, 1, bool(one.exact_match)) for one in items]
    return Parallel(labels, np.array(rows, dtype=np.int64), np.array([one.num_tied for one in items]))
