"""The stage `simulate`: the built-in corpus as raw verdicts of simulated annotators, with the answer key apart.

Everything here is simulated but the prompts and their good answers: it serves to try methods, it is not evidence.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from steelyard.annotation.corruptions import (
    DEGRADATIONS,
    CorpusEntry,
    Material,
    Phrases,
    check_entry,
    choose_entries,
    draw_degradations,
    gold_case,
    prompt_of,
    write_drafts,
)
from steelyard.annotation.simulated_annotators import (
    HUMAN,
    LLM,
    Candidates,
    Noise,
    SimulationSummary,
    human_judgments,
    llm_judgments,
)
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError, choices
from steelyard.core.numerics import generator
from steelyard.core.text import num_characters, number_of, verb_for
from steelyard.core.types import Case, Counts, Judgment, Run
from steelyard.curation.splits import split_cases
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import Option, SettingOption, Verb

HELD_OUT = "unseen"


class Config(BaseConfig, frozen=True):
    """Settings of a simulation. Null ``held_out_kind`` holds no kind of worse answer out."""

    languages: tuple[str, ...] = ("zh", "en")
    """The languages of the prompts."""
    num_prompts: int | None = None
    """The number of prompts. Default: all of the languages."""
    test_share: float = 0.35
    """The share of prompts for testing."""
    llm_share: float = 0.3
    """The share of the training prompts that the simulated LLM judges, and no person."""
    num_worse: int = 4
    """The number of worse answers of a training prompt, each of another kind. A test prompt has one of every kind."""
    held_out_kind: Annotated[
        str | None, msgspec.Meta(extra={"names_in": "steelyard.annotation.corruptions.DEGRADATIONS"})
    ] = "code_switched"
    """The kind of worse answer that only kinds.jsonl has."""
    num_annotators: int = 8
    """The number of simulated people."""
    human: Noise = HUMAN
    """Errors of simulated people."""
    llm: Noise = LLM
    """Errors of the simulated LLM."""
    seed: int = 0
    """The seed of the simulation."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of worse answers in the training part."""
        return tuple(kind for kind in DEGRADATIONS if kind != self.held_out_kind)


def check_simulation(config: Config, languages: tuple[str, ...]) -> None:
    """Check the settings against the corpus, which is in ``languages``. Raises ConfigError."""
    for language in config.languages:
        if language not in languages:
            raise ConfigError(
                f"no corpus in {language!r}", where="simulate.languages", allowed=choices(language, languages)
            )
    if config.held_out_kind is not None and config.held_out_kind not in DEGRADATIONS:
        raise ConfigError(
            f"no kind {config.held_out_kind!r}",
            where="simulate.held_out_kind",
            allowed=choices(config.held_out_kind, DEGRADATIONS),
        )
    shares = {"test_share": config.test_share, "llm_share": config.llm_share}
    if not all(0 < share < 1 for share in shares.values()) or not config.languages:
        raise ConfigError(
            f"test_share {config.test_share}, llm_share {config.llm_share}, languages {list(config.languages)}",
            where="simulate",
            allowed="shares between 0 and 1, and one language or more",
        )
    if not 2 <= config.num_worse <= len(config.kinds):
        raise ConfigError(
            f"num_worse is {config.num_worse}", where="simulate", allowed=f"2 to {len(config.kinds)}, one of a kind"
        )


_DEFAULT = Config()


class Corpus(NamedTuple):
    """Every entry of every language, and the phrases of each language."""

    entries: tuple[CorpusEntry, ...]
    phrases: dict[str, Phrases]

    @property
    def languages(self) -> tuple[str, ...]:
        """Return the languages with entries, sorted."""
        return tuple(sorted({entry.language for entry in self.entries}))


VERB = Verb("Data", 24, (Option("out", "The folder for the case files."), SettingOption("seed")), is_command=False)


def simulate(out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run[SimulationSummary]:
    """Make cases to try things on: hand-written good answers, generated worse ones, and simulated verdicts.

    No person judged anything here. `cases.jsonl` has the verdicts of simulated people, `llm.jsonl` those of a simulated
    LLM on other prompts, `gold.jsonl` the true ranking of both. `test.jsonl` has further prompts with their true
    ranking, and `kinds.jsonl` sets their good answers against one worse answer of each kind.

    Raises ConfigError for languages, kinds and numbers that the corpus cannot serve.

    >>> simulated = sy.simulate(num_prompts=48, seed=1)
    >>> sorted({case.prompt.language for case in simulated.cases})
    ['en', 'zh']
    """

    def write(result: Result) -> None:
        corpus = read_corpus()
        check_simulation(config, corpus.languages)
        entries = choose_entries(corpus.entries, config.languages, config.num_prompts, seed=config.seed)
        _write(result, corpus, split_entries(entries, config), config)

    return run_stage(out, "simulate", Run[SimulationSummary], write, config=config, inputs={}, force=force)


class EntryParts(NamedTuple):
    """The entries that people judge, those that the LLM judges, and those for testing."""

    human: tuple[CorpusEntry, ...]
    llm: tuple[CorpusEntry, ...]
    test: tuple[CorpusEntry, ...]


def _write(result: Result, corpus: Corpus, parts: EntryParts, config: Config) -> None:
    num_worse = {"human": config.num_worse, "llm": config.num_worse, "test": len(config.kinds)}
    gold = {
        name: [_composed(entry, part, corpus, config, num_worse=num_worse[name]) for entry in part]
        for name, part in parts._asdict().items()
    }
    by_kind = [case for entry in parts.test for case in _by_kind(entry, parts.test, corpus, config)]
    by_people, by_llm = (list(map(_candidates, gold[name])) for name in ("human", "llm"))
    human = human_judgments(by_people, config.human, num_annotators=config.num_annotators, seed=config.seed)
    llm = llm_judgments(by_llm, config.llm, seed=config.seed)
    write_cases(result.path("cases.jsonl"), _judged(gold["human"], human))
    write_cases(result.path("llm.jsonl"), _judged(gold["llm"], llm))
    write_cases(result.path("gold.jsonl"), gold["human"] + gold["llm"])
    write_cases(result.path("test.jsonl"), gold["test"])
    write_cases(result.path("kinds.jsonl"), by_kind)
    sizes = {name: len(part) for name, part in parts._asdict().items()}
    result.counts = Counts(num_in=sum(sizes.values()), num_used=sum(sizes.values()), noted=sizes)
    result.summary = SimulationSummary(
        simulated=True,
        num_prompts=sizes,
        num_judgments={"human": sum(map(len, human)), "llm": sum(map(len, llm))},
        num_responses={name: _num_made(cases) for name, cases in gold.items()},
        held_out_kind=config.held_out_kind,
    )


def _composed(
    entry: CorpusEntry, part: Sequence[CorpusEntry], corpus: Corpus, config: Config, *, num_worse: int
) -> Case:
    degradations = draw_degradations(config.kinds, num_worse, generator(config.seed, "faults", entry.id))
    drafts = write_drafts(material_of(entry, part, corpus), degradations, seed=config.seed)
    return gold_case(entry, drafts, seed=config.seed)


def _by_kind(entry: CorpusEntry, part: Sequence[CorpusEntry], corpus: Corpus, config: Config) -> Iterator[Case]:
    """Yield the good answer against one worse answer of every kind, including the held-out kind."""
    degradations = draw_degradations(
        tuple(DEGRADATIONS), len(DEGRADATIONS), generator(config.seed, "faults by kind", entry.id)
    )
    material = material_of(entry, part, corpus)
    for drawn in sorted(degradations):
        drafts = write_drafts(material, [drawn], seed=config.seed)
        case = gold_case(entry, drafts, seed=config.seed)
        is_held_out = drawn.kind == config.held_out_kind
        # The name carries the mark into every table by category.
        name = f"{drawn.kind} ({HELD_OUT})" if is_held_out else drawn.kind
        id_ = f"{entry.id}/{drawn.kind}"
        prompt = msgspec.structs.replace(case.prompt, id=id_, category=(name, *entry.category))
        yield msgspec.structs.replace(case, prompt=prompt)


def _candidates(case: Case) -> Candidates:
    return Candidates(
        tuple(response.id for response in case.responses),
        tuple((response.meta or {})["quality"] for response in case.responses),
        tuple(max(1, num_characters(response)) for response in case.responses),
    )


def _judged(gold: Sequence[Case], judgments: Iterable[tuple[Judgment, ...]]) -> Iterator[Case]:
    """Yield the cases as annotation gives them: responses and verdicts, without ranking and latent quality."""
    for case, verdicts in zip(gold, judgments, strict=True):
        responses = tuple(
            msgspec.structs.replace(response, meta={"made_by": (response.meta or {})["made_by"]})
            for response in case.responses
        )
        yield msgspec.structs.replace(case, responses=responses, judgments=verdicts, ranking=None)


def _num_made(cases: Iterable[Case]) -> dict[str, int]:
    made = Counter((response.meta or {})["made_by"] for case in cases for response in case.responses)
    return dict(sorted(made.items()))


def read_corpus() -> Corpus:
    """Read the installed corpus and check every entry."""
    folder = files("steelyard") / "data"
    entries: list[CorpusEntry] = []
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.startswith("corpus."):
            lines = file.read_text(encoding="utf-8").split("\n")
            entries += [check_entry(msgspec.json.decode(line, type=CorpusEntry)) for line in lines if line.strip()]
    tables = tomllib.loads((folder / "phrases.toml").read_text(encoding="utf-8"))
    return Corpus(tuple(entries), {name: msgspec.convert(table, Phrases) for name, table in tables.items()})


def split_entries(entries: Sequence[CorpusEntry], config: Config) -> EntryParts:
    """Split the entries into parts, each with its share of every category and language."""
    train = 1 - config.test_share
    shares = {"human": train * (1 - config.llm_share), "llm": train * config.llm_share, "test": config.test_share}
    names = split_cases([Case(prompt=prompt_of(entry), responses=()) for entry in entries], shares, seed=config.seed)
    return EntryParts(
        *(tuple(entry for entry, name in zip(entries, names, strict=True) if name == part) for part in shares)
    )


def material_of(entry: CorpusEntry, part: Sequence[CorpusEntry], corpus: Corpus) -> Material:
    """Return the material for worse answers to the entry, from its part alone: no test answer is trained on.

    A part without another language takes foreign answers from the rest of the corpus, which is in no part.
    Raises EvidenceError for a part that is too small.
    """
    others = [each for each in part if each.language == entry.language and each.category[0] != entry.category[0]]
    foreign = [each for each in part if each.language != entry.language]
    languages = {each.language for each in part}
    spare = [each for each in corpus.entries if each.language not in languages]
    if not others or not (foreign or spare):
        raise EvidenceError(
            f"{number_of(len(part), 'prompt')} {verb_for(len(part), 'is', 'are')} too few: no answer of another "
            f"category can stand in for that to {entry.id!r}",
            where="simulate",
            do="raise num_prompts, or change test_share",
        )
    return Material(entry, corpus.phrases[entry.language], tuple(others), tuple(foreign or spare))
