"""Real error annotations of WMT 2023, as their authors published them, there and back."""

import subprocess
import sys
import tarfile
from collections import defaultdict
from pathlib import Path

import pytest

from steelyard.io.cases import read_cases
from steelyard.stages.convert import Config, convert
from steelyard.stages.resolve import Config as Resolving
from steelyard.stages.resolve import resolve

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "wmt_mqm" / "generalMT2023"
PAIRS = ("ende", "zhen")
ARCHIVES = {pair: DATA / pair / f"sxs_mqm_generalMT2023_{pair}.3ratingsPerSegment.tsv.tar.gz" for pair in PAIRS}
pytestmark = [
    pytest.mark.field,
    pytest.mark.skipif(
        not all(path.exists() for path in ARCHIVES.values()), reason="the real data are not beside the project"
    ),
]


def table(pair, folder):
    """The table unpacked, and its rows split at their tabs."""
    with tarfile.open(ARCHIVES[pair]) as archive:
        content = archive.extractfile(archive.getmembers()[0]).read()
    path = folder / f"{pair}.tsv"
    path.write_bytes(content)
    header, *lines = content.decode("utf-8").removesuffix("\n").split("\n")
    names = header.split("\t")[:10]
    return path, [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


def penalty(row):
    if row["category"] == "Non-translation!":
        return 25
    if row["category"] == "Fluency/Punctuation" and row["severity"] == "Minor":
        return 0.1
    return {"Major": 5, "Minor": 1}.get(row["severity"], 0)


@pytest.mark.parametrize("pair", PAIRS)
def test_every_error_is_read(pair, tmp_path):
    path, rows = table(pair, tmp_path)
    done = convert(path, tmp_path / "c.jsonl")
    cases = list(read_cases(tmp_path / "c.jsonl"))
    assert (done.from_kind, len(cases)) == ("mqm", len({(row["doc"], row["globalSegId"]) for row in rows}))
    totals = defaultdict(float)
    for row in rows:
        totals[row["doc"], row["globalSegId"], row["system"], row["rater"]] -= penalty(row)
    found = {
        (*one.prompt.id.rsplit("/", 1), rating.response, rating.rater): rating.value
        for one in cases
        for rating in one.ratings
    }
    assert found == pytest.approx(dict(totals))


@pytest.mark.parametrize("pair", PAIRS)
def test_spans_cut_out_what_was_marked(pair, tmp_path):
    path, rows = table(pair, tmp_path)
    convert(path, tmp_path / "c.jsonl")
    marked = {row["target"].split("<v>")[1].split("</v>")[0] for row in rows if "<v>" in row["target"]}
    cut = {
        response.text[start:end]
        for one in read_cases(tmp_path / "c.jsonl")
        for response in one.responses
        for rating in one.ratings
        if rating.response == response.id
        for start, end, _, _ in rating.spans or ()
    }
    # Spans in a text that one rater saw with other spaces are left out where they would cut something else.
    assert cut <= marked
    assert len(cut) > 0.98 * len(marked)


@pytest.mark.parametrize("pair", PAIRS)
def test_judgments_come_from_ratings_only_when_asked_for(pair, tmp_path):
    path, _ = table(pair, tmp_path)
    convert(path, tmp_path / "c.jsonl")
    assert not any(one.judgments for one in read_cases(tmp_path / "c.jsonl"))
    done = convert(path, tmp_path / "d.jsonl", Config(ratings_to_judgments=True))
    for one in read_cases(tmp_path / "d.jsonl"):
        values = {(rating.rater, rating.response): rating.value for rating in one.ratings}
        for said in one.judgments:
            difference = values[said.judge, said.left] - values[said.judge, said.right]
            assert (difference > 0, difference < 0) == (said.verdict == "left", said.verdict == "right")
    assert done.noted["judgments derived from ratings"] > done.num_cases


def test_what_the_how_to_prints_is_what_comes_out(tmp_path, monkeypatch):
    path, _ = table("zhen", tmp_path)
    root = Path(__file__).parents[2]
    monkeypatch.chdir(tmp_path)
    convert(path, tmp_path / "zhen.jsonl", Config(language="en", source="wmt23"))
    script = [sys.executable, "-B", str(root / "docs" / "howto" / "wmt_mqm.py")]
    subprocess.run([*script, "judge", "zhen.jsonl", "zhen_judged.jsonl"], check=True, timeout=120)
    for name, aggregate in (("zhen_none", "none"), ("zhen_majority", "majority")):
        resolve(tmp_path / "zhen_judged.jsonl", tmp_path / name, Resolving(aggregate=aggregate), workers=1)
    tiers = subprocess.run(
        [*script, "tiers", "zhen_none", "zhen_majority"], check=True, capture_output=True, timeout=120
    )
    compared = subprocess.run([*script, "compare", "zhen.jsonl"], check=True, capture_output=True, timeout=600)
    page = (root / "docs" / "howto" / "wmt_mqm.md").read_text(encoding="utf-8")
    printed = (tiers.stdout + compared.stdout).decode().splitlines()
    assert len(printed) > 30
    assert [line for line in printed if line not in page] == []
    # Counted by a reader of the published table of its own: 326 of 377 segments have one tier.
    assert "zhen_none: one tier 86.5% of 377" in page
