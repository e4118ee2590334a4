"""The example in the help of the package runs as it is written."""

import re

import msgspec

import steelyard as sy
import tiny
from parallel_cases import parallel_cases


def test_the_example_of_the_package_runs(tmp_path, monkeypatch):
    """The data have people's ratings; the backbone is a random one of two layers under the published name."""
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"^    (\S.*)$", sy.__doc__, flags=re.MULTILINE))
    assert 'model="Qwen/Qwen2.5-0.5B"' in code
    tiny.save_base(tmp_path / "Qwen" / "Qwen2.5-0.5B")
    sy.Cases(map(rated, parallel_cases())).save("ratings.jsonl")
    names = {}
    exec(code, names)
    assert names["ranked"][0].ranking == (("a",), ("b",))
    assert names["evaluation"].accuracy.n == len(names["parts"]["test"])
    assert (tmp_path / "my-model" / "model.safetensors").is_file()


def rated(case):
    """Return the case with a rating of each response in place of the verdict."""
    ratings = tuple(
        sy.Rating(response=name, rater="ann", kind="human", dimension="quality", value=value, range=(1, 5))
        for name, value in (("a", 5), ("b", 2))
    )
    return msgspec.structs.replace(case, judgments=(), ranking=None, ratings=ratings)
