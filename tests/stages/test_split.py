import pytest

from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.io.cases import read_cases, write_cases
from steelyard.stages.split import Config, split
from strategies import case


@pytest.fixture
def file(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case(id=f"p{index}", text=f"问题 {index}") for index in range(10)])
    return tmp_path / "c.jsonl"


def test_the_parts_hold_every_case_once(file, tmp_path):
    run = split(file, tmp_path / "out")
    assert run.summary.parts == {"train": 8, "test": 2}
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


def test_near_duplicates_fall_on_one_side_unless_off(tmp_path):
    texts = [f"请写一首关于{season}雨落在我家乡旧港口的短诗,要求押韵,不超过八行" for season in "春夏秋冬"]
    texts += ["法国的首都是哪里?", "How do I bake bread?", "איך אופים לחם?", "パンの焼き方は?"]
    write_cases(tmp_path / "c.jsonl", [case(id=f"p{index}", text=text) for index, text in enumerate(texts)])
    parts = {"one": 0.5, "two": 0.5}
    run = split(tmp_path / "c.jsonl", tmp_path / "out", Config(parts=parts))
    assert run.summary.num_joined_as_near_duplicates == 3
    assert (run.summary.num_groups, run.summary.largest_group) == (5, 4)
    sides = [{one.prompt.id for one in read_cases(tmp_path / "out" / f"{name}.jsonl")} for name in parts]
    assert any({"p0", "p1", "p2", "p3"} <= side for side in sides)
    off = split(tmp_path / "c.jsonl", tmp_path / "off", Config(parts=parts, near_duplicates="off"))
    assert off.summary.num_groups == 8


@pytest.mark.parametrize("near", [0.0, 1.5, -1.0])
def test_a_similarity_that_cannot_be_is_refused(file, tmp_path, near):
    with pytest.raises(ConfigError, match="near_duplicates"):
        split(file, tmp_path / "out", Config(near_duplicates=near))


@pytest.mark.parametrize("names", [("A", "a"), ("Straße", "STRASSE"), ("caf\u00e9", "cafe\u0301")])
def test_parts_whose_files_a_disk_may_hold_as_one_are_refused(file, tmp_path, names):
    with pytest.raises(ConfigError, match="differ in case or Unicode form alone"):
        split(file, tmp_path / "out", Config(parts=dict.fromkeys(names, 0.5)))
    assert not (tmp_path / "out").exists()


def test_near_duplicates_that_leave_a_part_empty_are_named_with_the_setting(tmp_path):
    texts = [f"Please work out how many apples are left after Maria sells {index} of them." for index in range(10, 40)]
    write_cases(tmp_path / "c.jsonl", [case(id=text, text=text) for text in texts])
    with pytest.raises(EvidenceError, match=r"in 1 group .* nothing for test") as raised:
        split(tmp_path / "c.jsonl", tmp_path / "out", Config(near_duplicates=0.7))
    assert "near_duplicates=off" in str(raised.value.do)
