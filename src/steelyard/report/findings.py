"""Findings of the checks of inputs in words: a section of the page, and lines for the terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import json
from msgspec.structs import replace

from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import InputFinding
from steelyard.evaluation.evaluations import JOINED_RUNS
from steelyard.evaluation.tables import Sentence, count, isolate
from steelyard.io.progress import in_words
from steelyard.report.page import COMMA, Section, Strings
from steelyard.report.run_records import counts_line
from steelyard.report.sources import FinishedRun


def findings_section(sources: Sequence[FinishedRun]) -> Section:
    """Return the findings of all runs in words, equal ones once; a section without sentences for none.

    A leaderboard repeats the findings of its evaluations: where these are on the page, it adds nothing.
    """
    with_findings = [source for source in sources if source.run.findings]
    names: dict[bytes, list[str]] = {}
    findings: dict[bytes, InputFinding] = {}
    joined: list[tuple[str, InputFinding, bytes, int]] = []
    for source in with_findings:
        for finding in source.run.findings:
            details = dict(finding.details)
            runs = details.pop(JOINED_RUNS, None)
            key = json.encode(replace(finding, details=details), order="sorted")
            if runs is None:
                findings.setdefault(key, finding)
                names.setdefault(key, []).append(source.name)
            else:
                joined.append((source.name, finding, key, len(runs.split(", "))))
    sentences = [sentence for key, finding in findings.items() for sentence in finding_sentences(names[key], [finding])]
    for name, finding, key, num_runs in joined:
        if len(names.get(key, ())) < num_runs:
            sentences += finding_sentences([name], [finding])
    evidence = tuple(counts_line(source.name, source.run.counts) for source in with_findings)
    return Section("input_checks", evidence, (), tuple(sentences))


def finding_sentences(names: Sequence[str], findings: Iterable[InputFinding]) -> Iterator[Sentence]:
    """Yield a sentence for each finding of what has the ``names``."""
    for finding in findings:
        yield Sentence(f"say_check_{finding.check}", _values(finding, COMMA.join(map(isolate, names)), COMMA))


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
    within = [finding.details[key] for key in (JOINED_RUNS, "file") if key in finding.details]
    name = f"{name} ({comma.join(within)})" if within else name
    numbers = {"count": count(finding.count), "total": count(finding.total)}
    return {"name": name, **numbers, "examples": comma.join(map(repr, finding.examples)), **finding.details}
