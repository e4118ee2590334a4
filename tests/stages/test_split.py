import pytest

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.files.cases import read_cases, write_cases
from steelyard.stages.split import Config, split
from strategies import case


@pytest.fixture
def file(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case(id=f"p{index}", text=f"问题 {index}") for index in range(10)])
    return tmp_path / "c.jsonl"


def test_the_parts_hold_every_case_once(file, tmp_path):
    run = split(file, tmp_path / "out")
    assert run.summary["parts"] == {"train": 8, "test": 2}
    parts = [one for name in ("train", "test") for one in read_cases(tmp_path / "out" / f"{name}.jsonl")]
    assert sorted(one.prompt.id for one in parts) == sorted(one.prompt.id for one in read_cases(file))
    assert split(file, tmp_path / "out") == run


@pytest.mark.parametrize("parts", [{"train": 0.5}, {"train": 1.5, "test": -0.5}, {"../x": 0.5, "b": 0.5}])
def test_shares_that_make_no_sense_are_refused(file, tmp_path, parts):
    with pytest.raises(ConfigError, match=r"split\.parts"):
        split(file, tmp_path / "out", Config(parts=parts))
    assert not (tmp_path / "out").exists()


def test_a_part_that_would_be_empty_is_named(tmp_path):
    write_cases(tmp_path / "one.jsonl", [case()])
    with pytest.raises(EvidenceError, match="nothing for test"):
        split(tmp_path / "one.jsonl", tmp_path / "out")
