"""The stage `describe`: the statistics of a data set, as in Table 1 of CHEEMS, for all cases and by group."""

import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Counts, Run
from steelyard.io.cases import read_case_files
from steelyard.io.data_files import case_roles, find_case_files
from steelyard.io.progress import track
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import Argument, CaseFile, Option, SettingOption, Verb
from steelyard.prompts.description import CountTokens, DescribeSummary, describe_cases
from steelyard.ranking.pairs import PairChoice


class Config(BaseConfig, frozen=True):
    """Settings of a description."""

    pairs: PairChoice | None = None
    """Which pairs are the comparisons. Default: the pairs that a case lists, or else every pair across tiers."""
    tokenizer: str | None = None
    """The folder of a model, or its name on the hub, whose tokens are counted too."""


_DEFAULT = Config()


VERB = Verb(
    "Data",
    25,
    (
        Argument("cases", "Case files, folders or quoted patterns.", metavar="CASES"),
        Option("out", "The folder for run.json, which a report reads. Default: the terminal alone."),
        SettingOption("tokenizer"),
        SettingOption("pairs"),
    ),
    is_command=False,
)


def describe(
    cases: Sequence[CaseFile], out: Path | None = None, config: Config = _DEFAULT, *, force: bool = False
) -> Run[DescribeSummary]:
    """Describe a data set: prompts, responses, comparisons, and mean lengths, by category, language, source and author.

    These are the numbers of Table 1 of CHEEMS. Comparisons are ordered pairs, so ties are none; the mean lengths of
    chosen and rejected responses are over comparisons. Characters are Unicode code points. The report of the run shows
    them, as tables for a paper too. Nothing is changed.

    Raises EvidenceError for files without a case, and ModelError for a tokenizer that does not load.

    >>> described = sy.describe(cases)
    >>> described.summary.overall.num_comparisons
    40
    >>> [row["name"] for row in described.table if row["by"] == "language"]
    ['en', 'zh']
    """
    files = find_case_files(*cases)

    def write(result: Result) -> None:
        count_tokens = None if config.tokenizer is None else _token_counter(config.tokenizer)
        shown = track(read_case_files(files), "describe (cases read)")
        summary = describe_cases(shown, config.pairs, count_tokens=count_tokens, tokenizer=config.tokenizer)
        number = summary.overall.num_prompts
        if number == 0:
            raise EvidenceError("there is no case to describe", where=str(files[0]), do="name a file with cases")
        noted = {"judged, without a ranking": summary.num_unranked} if summary.num_unranked else {}
        result.counts = Counts(num_in=number, num_used=number, noted=noted)
        result.summary = summary

    inputs = case_roles(files)
    with tempfile.TemporaryDirectory(prefix="steelyard-") if out is None else nullcontext(str(out)) as folder:
        place = Path(folder) / "describe" if out is None else out
        return run_stage(place, "describe", Run[DescribeSummary], write, config=config, inputs=inputs, force=force)


def _token_counter(name: str) -> CountTokens:
    from steelyard.networks.loading import load_tokenizer

    tokenizer = load_tokenizer(name)
    tokenizer.model_max_length = 2**62  # counting needs no limit, and no warning of one

    def count(texts: Sequence[str]) -> list[int]:
        if not texts:
            return []
        # A text that spells a special token has the tokens of its characters.
        encoded = tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True)
        return [len(ids) for ids in encoded["input_ids"]]

    return count
