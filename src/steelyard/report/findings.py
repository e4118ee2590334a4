"""Findings of the checks of inputs in words: a section of the page, and lines for the terminal."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import InputFinding
from steelyard.evaluation.evaluations import JOINED_RUNS, equal_findings, finding_key
from steelyard.evaluation.tables import Sentence, count, isolate
from steelyard.io.progress import in_words
from steelyard.report.page import COMMA, Section, Strings
from steelyard.report.run_records import counts_line
from steelyard.report.sources import FinishedRun

_MOST_NAMES = 4


def findings_section(sources: Sequence[FinishedRun]) -> Section:
    """Return the findings of all runs in words, equal ones once; a section without sentences for none.

    A leaderboard repeats the findings of its evaluations: where these are on the page, it adds nothing.
    """
    with_findings = [source for source in sources if source.run.findings]
    every = [(source.name, finding) for source in with_findings for finding in source.run.findings]
    of_evaluations = [(name, finding) for name, finding in every if JOINED_RUNS not in finding.details]
    num_shown = Counter(finding_key(finding) for _, finding in of_evaluations)
    sentences = [
        sentence
        for finding, names in equal_findings(of_evaluations)
        for sentence in finding_sentences(names, [finding])
    ]
    for name, finding in every:
        runs = finding.details.get(JOINED_RUNS)
        if runs is not None and num_shown[finding_key(finding)] < len(runs.split(", ")):
            sentences += finding_sentences([name], [finding])
    evidence = tuple(counts_line(source.name, source.run.counts) for source in with_findings)
    return Section("input_checks", evidence, (), tuple(sentences))


def finding_sentences(names: Sequence[str], findings: Iterable[InputFinding]) -> Iterator[Sentence]:
    """Yield a sentence for each finding of what has the ``names``."""
    for finding in findings:
        name = COMMA.join(_first([isolate(name) for name in names]))
        yield Sentence(f"say_check_{finding.check}", _values(finding, name, COMMA))


def finding_lines(findings: Iterable[InputFinding]) -> Iterator[str]:
    """Yield a line for each finding, its remedy in the words of the interface that runs."""
    strings = Strings("sections/findings.toml")
    for finding in findings:
        template = strings.table[f"say_check_{finding.check}"]["en"]
        values = dict(_values(finding, "check", ", "))
        if "remedy" in values:
            setting, _, value = values["remedy"].partition("=")
            values["remedy"] = in_words(Advice(Remedy(setting, value)))
        yield strings.fill(template, values, "en")


def _values(finding: InputFinding, name: str, comma: str) -> Mapping[str, str]:
    runs = ", ".join(_first(finding.details.get(JOINED_RUNS, "").split(", ")))
    within = [each for each in (runs, finding.details.get("file")) if each]
    name = f"{name} ({comma.join(within)})" if within else name
    numbers = {"count": count(finding.count), "total": count(finding.total)}
    return {"name": name, **numbers, "examples": comma.join(map(repr, finding.examples)), **finding.details}


def _first(names: list[str]) -> list[str]:
    """Return the first of many names, and how many there are."""
    return names if len(names) <= _MOST_NAMES else [*names[:_MOST_NAMES], f"… ({len(names)})"]
