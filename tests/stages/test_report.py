import re

import pytest

from browser import CHROMIUM, opened
from report_runs import all_runs, made_cases, resolve_run
from steelyard.core.errors import EvidenceError, FileError, OutputError
from steelyard.core.types import Run
from steelyard.io.run_folder import read_run
from steelyard.stages.report import Config, ReportSummary, report


def test_a_file_is_one_file_and_nothing_beside_it(tmp_path):
    (tmp_path / "runs").mkdir()
    runs = all_runs(tmp_path / "runs", 170)
    out = tmp_path / "new" / "report.html"
    run = report(runs, out)
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]
    assert out.stat().st_size < 5 * 2**20
    assert run.summary.num_items == run.summary.num_items_whole == 170
    assert run.summary.runs == {"resolved": "resolve", "model": "train", "evaluated": "evaluate"}
    assert run.summary.num_bytes == out.stat().st_size
    assert run.summary.simulated is True
    assert run.counts.num_used == 3


def test_a_folder_gets_the_page_and_its_record_and_an_equal_report_is_not_made_again(tmp_path):
    runs = [resolve_run(tmp_path / "resolved", made_cases(4))]
    out = tmp_path / "out"
    run = report(runs, out)
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "run.json"]
    assert read_run(out, Run[ReportSummary]) == run
    before = (out / "report.html").stat().st_mtime_ns
    report(runs, out)
    assert (out / "report.html").stat().st_mtime_ns == before
    with pytest.raises(OutputError, match="holds another run"):
        report(runs, out, Config(language="zh"))
    report(runs, out, Config(language="zh"), force=True)
    assert '<html lang="zh"' in (out / "report.html").read_text(encoding="utf-8")


def test_equal_runs_make_equal_pages(tmp_path):
    runs = all_runs(tmp_path, 9)
    report(runs, tmp_path / "a.html")
    report(runs, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_report_is_replaced_but_nothing_else_is(tmp_path):
    runs = [resolve_run(tmp_path / "resolved", made_cases(2))]
    out = tmp_path / "page.html"
    report(runs, out)
    report(runs, out, Config(title="第二版"))
    assert "第二版" in out.read_text(encoding="utf-8")
    out.write_text("<p>mine")
    with pytest.raises(OutputError, match="not a Steelyard report"):
        report(runs, out)
    assert out.read_text() == "<p>mine"
    report(runs, out, force=True)
    assert "Steelyard" in out.read_text(encoding="utf-8")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(FileError, match="names a folder"):
        report(runs, tmp_path / "folder.html")


def test_an_unfinished_run_leaves_nothing_behind(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "started.json").write_text("{}")
    with pytest.raises(FileError, match="did not finish"):
        report([folder], tmp_path / "out" / "report.html")
    assert not (tmp_path / "out").exists()
    with pytest.raises(EvidenceError, match="no run is named"):
        report([], tmp_path / "report.html")


def test_a_page_over_its_budget_says_what_it_left_out(tmp_path):
    runs = [resolve_run(tmp_path / "resolved", made_cases(100))]
    run = report(runs, tmp_path / "small.html", Config(max_megabytes=0.02))
    assert 0 < run.summary.num_items_whole < 100
    assert "items include their texts" in (tmp_path / "small.html").read_text(encoding="utf-8")


@pytest.mark.field
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_browser_draws_every_figure_and_item_without_a_complaint(tmp_path, language):
    report(all_runs(tmp_path, 40, hostile=True), tmp_path / "report.html", Config(language=language))
    html, complaints = opened(f"file://{tmp_path}/report.html#item=p9", tmp_path / "profile")
    assert complaints == []
    places = len(re.findall(r'data-figure="\d+"', html))
    assert f'data-drawn="{places}"' in html
    assert 'data-items="40"' in html
    assert html.count('class="marks"') == places
    assert "@@" not in re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert re.search(r'<dialog id="item"[^>]* open', html)
    assert 'class="graph"' in html
    assert "تشتت رايلي" in html
    assert "owned" not in re.findall(r"<title>(.*?)</title>", html)[0]
