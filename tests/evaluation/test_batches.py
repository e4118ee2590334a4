"""Evaluation keeps columns of numbers: what is in memory does not grow with the texts or the number of batches."""

import json
import random
import tracemalloc

import msgspec
import pytest

from steelyard.core.errors import RecordError
from steelyard.core.types import Response, Scores
from steelyard.evaluation.config import Config
from steelyard.io.cases import write_cases
from steelyard.stages.evaluate import evaluate
from strategies import case

RANKING = (("a",), ("b",))


def write_bench(folder, num_cases, characters=1):
    """A bench whose better answer is always the longer one, and scores that say so of every second case."""
    responses = (Response(id="a", text="长" * (characters + 1)), Response(id="b", text="长" * characters))
    plain = case("p", "ab", ranking=RANKING)
    cases = (
        msgspec.structs.replace(
            plain, prompt=msgspec.structs.replace(plain.prompt, id=f"p{index}"), responses=responses
        )
        for index in range(num_cases)
    )
    write_cases(folder / "bench.jsonl", cases)
    lines = (Scores(prompt=f"p{index}", scores={"a": index % 2, "b": 0.5}) for index in range(num_cases))
    (folder / "scores.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def peak_memory(folder, **sizes):
    """The most bytes that an evaluation of such a bench holds at a time."""
    folder.mkdir()
    write_bench(folder, **sizes)
    tracemalloc.start()
    try:
        files = {"scores": folder / "scores.jsonl", "workers": 1}
        evaluate([folder / "bench.jsonl"], folder / "out", Config(num_resamples=10), **files)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_texts(tmp_path):
    peak_memory(tmp_path / "imports", num_cases=2)
    few, many = (peak_memory(tmp_path / str(number), num_cases=number, characters=60_000) for number in (90, 180))
    assert (tmp_path / "180" / "bench.jsonl").stat().st_size > 60 * 2**20
    assert many < 1.2 * few


@pytest.mark.slow
@pytest.mark.parametrize("num_cases", [1, 1024, 1025, 2500])
def test_batches_make_one_bench(tmp_path, num_cases):
    write_bench(tmp_path, num_cases)
    run = evaluate(
        [tmp_path / "bench.jsonl"], tmp_path / "out", Config(num_resamples=10), scores=tmp_path / "scores.jsonl"
    )
    assert (run.counts.num_in, run.summary.accuracy.n) == (num_cases, num_cases)
    assert run.summary.accuracy.value == pytest.approx((num_cases // 2) / num_cases)
    assert run.summary.baselines["longer"].accuracy.value == 1.0
    items = (tmp_path / "out" / "items.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(item)["prompt"] for item in items] == [f"p{index}" for index in range(num_cases)]


def evaluated(folder, out, **choices):
    """The items and the run without its times, of the bench in a folder."""
    run = evaluate(
        [folder / "bench.jsonl"], folder / out, Config(num_resamples=10), scores=folder / "scores.jsonl", **choices
    )
    return (folder / out / "items.jsonl").read_bytes(), msgspec.structs.replace(run, seconds=0.0, inputs={})


@pytest.mark.slow
def test_two_processes_give_what_one_gives(tmp_path):
    write_bench(tmp_path, 3000)
    assert evaluated(tmp_path, "two", workers=2) == evaluated(tmp_path, "one", workers=1)


@pytest.mark.parametrize("is_spaced", [False, True])
def test_lines_in_another_order_and_spelling_give_the_same(tmp_path, is_spaced):
    write_bench(tmp_path, 40)
    expected = evaluated(tmp_path, "first")
    for name in ("bench.jsonl", "scores.jsonl"):
        path = tmp_path / name
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if name == "scores.jsonl":
            random.Random(0).shuffle(rows)
        path.write_text("\n\n".join(json.dumps(row, ensure_ascii=is_spaced) for row in rows), encoding="utf-8")
    assert evaluated(tmp_path, "second") == expected


def write_languages(folder, languages):
    """Two cases of one prompt id, and lines of scores in the given languages."""
    cases = [case("p", "ab", language=language, ranking=RANKING) for language in ("en", "zh")]
    write_cases(folder / "bench.jsonl", cases)
    lines = [{"prompt": "p", "language": language, "scores": {"a": 2, "b": 1}} for language in languages]
    (folder / "scores.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


def test_a_line_without_a_language_stands_for_one_case_alone(tmp_path):
    write_languages(tmp_path, ("en", "zh"))
    assert evaluated(tmp_path, "good")[1].counts.num_used == 2
    write_languages(tmp_path, (None, None))
    with pytest.raises(RecordError, match=r"scores\.jsonl:1: prompt id 'p' has no item of language None"):
        evaluated(tmp_path, "bad")
    assert not (tmp_path / "bad" / "items.jsonl").exists()


def test_a_case_given_twice_is_named_though_its_scores_stand_beside_it(tmp_path):
    write_bench(tmp_path, 2)
    for name in ("bench.jsonl", "scores.jsonl"):
        with (tmp_path / name).open("r+b") as file:
            line = file.readline()
            file.seek(0, 2)
            file.write(line)
    with pytest.raises(RecordError, match=r"bench\.jsonl:3: prompt id 'p0'.*is already used at .*bench\.jsonl:1"):
        evaluated(tmp_path, "bad")


def test_more_scores_than_cases_are_refused_with_the_first_line_too_many(tmp_path):
    write_bench(tmp_path, 2)
    with (tmp_path / "scores.jsonl").open("a") as file:
        file.write('{"prompt": "q", "scores": {"a": 1, "b": 2}}\n')
    with pytest.raises(RecordError, match=r"scores\.jsonl:3: unknown prompt id 'q'"):
        evaluated(tmp_path, "bad")
