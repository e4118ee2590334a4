import json

import pytest

from steelyard.core.errors import ConfigError
from steelyard.io.batch_files import BatchLimits, BatchWriter, name_batch, tidy_batches
from steelyard.io.ledger import open_ledger

URL = "/v1/chat/completions"


def written(folder, texts, model="m", limits=None):
    writer = BatchWriter(folder, model, first=1, limits=limits or BatchLimits())
    for number, text in enumerate(texts):
        writer.add(f"r{number}", URL, {"model": model, "messages": [{"role": "user", "content": text}]})
    writer.close()
    return writer.files


def lines_of(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def test_a_file_has_at_most_fifty_thousand_requests(tmp_path):
    files = written(tmp_path, ("x" for _ in range(50_001)))
    assert [(file.name, len(file.requests)) for file in files] == [
        ("batch-0001-m.jsonl", 50_000),
        ("batch-0002-m.jsonl", 1),
    ]
    assert files[1].requests == ["r50000"]
    with open_ledger(None) as ledger:
        for file in files:
            ledger.batches.mark(file.name, file.digest, "now", file.requests)
            name_batch(tmp_path, file.name)
        tidy_batches(tmp_path, ledger.batches)  # compares the hashes
        assert [batch.num_waiting for batch in ledger.batches.waiting()] == [50_000, 1]
    assert lines_of(tmp_path / "batch-0002-m.jsonl") == [
        {"custom_id": "r50000", "method": "POST", "url": URL,
         "body": {"model": "m", "messages": [{"role": "user", "content": "x"}]}}
    ]  # fmt: skip


def test_a_file_has_at_most_so_many_bytes(tmp_path):
    (one,) = written(tmp_path, ["问题"])
    size = (tmp_path / f".{one.name}.part").stat().st_size
    files = written(tmp_path, ["问题"] * 5, limits=BatchLimits(num_bytes=2 * size))
    assert [len(file.requests) for file in files] == [2, 2, 1]
    assert all((tmp_path / f".{file.name}.part").stat().st_size <= 2 * size for file in files)
    with pytest.raises(ConfigError, match=r"one request has \d+ bytes; a batch file has at most"):
        written(tmp_path, ["问题"], limits=BatchLimits(num_bytes=size - 1))


def test_texts_are_written_as_they_are(tmp_path):
    texts = ["数学：√2 ≈ 1.414", "مرحبا", "a\u2028b\nc\rd", "👩\u200d👧", "half of a pair: \ud83d"]
    (file,) = written(tmp_path, texts, model="a/b c：模型")
    part = tmp_path / f".{file.name}.part"
    assert file.name == "batch-0001-a-b-c.jsonl"
    assert [line["body"]["messages"][0]["content"] for line in lines_of(part)] == texts
    assert "数学" in part.read_text(encoding="utf-8")


def test_files_without_marks_go_and_those_with_marks_get_their_names(tmp_path):
    with open_ledger(None) as ledger:
        (first,) = written(tmp_path, ["a"])
        ledger.batches.mark(first.name, first.digest, "now", first.requests)
        (tmp_path / ".batch-0002-m.jsonl.part").write_text("not marked")
        tidy_batches(tmp_path, ledger.batches)
        assert [path.name for path in tmp_path.iterdir()] == [first.name]
        # A file that was released before it got its name must not be sent any more.
        (tmp_path / first.name).rename(tmp_path / f".{first.name}.part")
        assert ledger.batches.release("all") == 1
        tidy_batches(tmp_path, ledger.batches)
        assert list(tmp_path.iterdir()) == []
