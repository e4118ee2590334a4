import numpy as np

from steelyard.core.plugins import build
from steelyard.curation.filtering_arms import Columns
from steelyard.io.cases import write_cases
from steelyard.stages.filters.evidence import read_study
from steelyard.stages.filters.settings import Config
from steelyard.stages.filters.teaching import asked_of, margins_by, taught_by
from supervision_files import judged


def columns(*rows):
    return Columns(*(np.array(column) for column in zip(*rows, strict=True)))


def test_a_model_learns_the_pairs_that_it_is_given_and_no_others(tmp_path):
    texts = ("好好", "坏坏", "中")
    cases = [judged(str(number), human=("a>b",), llm=("a<b", "b>c"), texts=texts) for number in range(12)]
    write_cases(tmp_path / "cases.jsonl", cases)
    model = build("models", "ngram", {"train": str(tmp_path / "cases.jsonl"), "min_documents": 1})
    study = read_study(cases, Config(judge="gpt"), where="cases.jsonl")
    good = taught_by(model, study, columns(*((number, 0, 1) for number in range(6))))
    other = taught_by(model, study, columns(*((number, 1, 0) for number in range(6))))
    asked = columns((11, 0, 1), (11, 1, 0), (10, 0, 1))
    first, turned, third = margins_by(good, study, asked).tolist()
    assert first > 0
    assert turned == -first
    assert third == first
    assert (margins_by(other, study, asked)[:1] < 0).all()
    found = asked_of(good, study, np.arange(len(study.judged.case)) < 2)
    assert found.prompt.tolist() == [0, 0]
    assert found.margin[0] < 0  # the judge prefers b to a
    assert found.longer.tolist() == [0, 1]
