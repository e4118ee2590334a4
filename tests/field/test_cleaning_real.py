"""Cleaning on real texts: the fast path has the figures of the plain definition on HalluQA and MultiJail."""

import csv
import json
from pathlib import Path

import pytest

from plain_cleaning import figures
from steelyard.core.types import Response

DATA = Path(__file__).parents[2].parent / "shared" / "data"


def halluqa():
    for file in sorted((DATA / "halluqa" / "Chinese_LLMs_outputs").rglob("*.json"))[::4]:
        for row in json.loads(file.read_text(encoding="utf-8")):
            yield row["response"], "zh", row["question"]


def table(path, encoding="utf-8"):
    with path.open(encoding=encoding, newline="") as file:
        return list(csv.DictReader(file))


def multijail():
    for row in table(DATA / "multijail" / "data" / "MultiJail.csv", "utf-8-sig"):
        for code in ("en", "zh", "it", "vi", "ar", "ko", "th", "bn", "sw", "jv"):
            yield row[code], code, row["en"]


def xstest():
    for file in sorted((DATA / "xstest" / "model_completions").glob("*.csv")):
        for row in table(file):
            yield row["completion"], "en", row["prompt"]


@pytest.mark.field
@pytest.mark.skipif(not DATA.is_dir(), reason="the data sets are not here")
@pytest.mark.parametrize(("read", "fewest"), [(halluqa, 2_000), (multijail, 3_000), (xstest, 2_000)])
def test_real_texts_have_the_figures_of_the_plain_definition(read, fewest):
    num_compared = 0
    for text, language, prompt in read():
        fast, plain = figures(Response(id="a", text=text), prompt=prompt, language=language)
        assert fast == plain
        num_compared += 1
    assert num_compared > fewest
