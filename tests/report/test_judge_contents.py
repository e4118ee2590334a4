import msgspec

from report_runs import made_cases, resolve_run
from steelyard.report.sources import judges_of, read_sources


def read(tmp_path, **sections):
    """What the report reads of a run of `resolve` whose summary has these sections."""
    (source,) = read_sources([resolve_run(tmp_path / "resolved", made_cases(2))])
    run = msgspec.structs.replace(source.run, summary=source.run.summary | sections)
    return judges_of(source._replace(run=run))


def test_a_summary_without_the_sections_reads_as_empty(tmp_path):
    report = read(tmp_path, authors=None)
    assert (report.judges.by_judge, report.agreement.judges, report.authors.strengths) == ({}, (), ())


def test_new_keys_are_passed_over(tmp_path):
    report = read(
        tmp_path,
        judges={"by_kind": {"human": {"num_judgments": 3, "new": 1, "length": {"longer": {"value": 0.5, "n": 2}}}}},
        authors={"strengths": [{"author": "甲", "value": 0.5, "low": None, "high": None, "n": 4}], "ties": "half"},
        agreement={"judges": [{"judges": ["a", "b"], "kappa": {"value": 0.1, "n": 3}}]},
    )
    human = report.judges.by_kind["human"]
    assert (human.num_judgments, human.length.longer.value) == (3, 0.5)
    assert report.authors.strengths[0].author == "甲"
    assert report.agreement.judges[0].judges == ("a", "b")
