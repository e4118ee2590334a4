import numpy as np
import pytest

import tiny
from steelyard.core.errors import OutputError
from steelyard.core.types import Case, Response
from steelyard.networks.features import Library, TextTokens, located
from steelyard.networks.reading import FeatureSettings
from strategies import case, prompt


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.save_base(tmp_path_factory.mktemp("backbone") / "model")


def library(folder, cache, **settings):
    return Library(FeatureSettings(path=folder, cache=str(cache), **settings))


def test_the_answer_is_where_the_tokens_differ_from_those_of_an_empty_one():
    assert located((1, 2, 8, 9, 3), (1, 2, 3)) == TextTokens((1, 2, 8, 9, 3), 2, 4)
    assert located((1, 2, 3), (1, 2, 3)) == TextTokens((1, 2, 3), 2, 3)
    assert located((1, 2, 8, 9), (1, 2, 3)) == TextTokens((1, 2, 8, 9), 2, 4)  # cut: the end mark is not there
    # an answer that begins and ends like the marks around it: nothing is counted twice
    assert located((1, 2, 3, 3), (1, 2, 3)) == TextTokens((1, 2, 3, 3), 3, 4)


def test_every_text_is_read_once_and_kept_for_other_runs(folder, tmp_path):
    first = library(folder, tmp_path)
    cases = [case("1", "ab"), case("2", "ba")]  # the same prompt text and the same answers
    found = first.features(cases)
    assert found.shape == (4, 2 * 4, 32)
    np.testing.assert_array_equal(found[[0, 1]], found[[3, 2]])
    kept = sorted(tmp_path.rglob("*.npy"))
    assert len(kept) == 2
    second = library(folder, tmp_path)
    np.testing.assert_array_equal(second.features(cases), found)
    assert "reader" not in vars(second), "the backbone was loaded though nothing had to be read"
    kept[0].unlink()
    third = library(folder, tmp_path)
    np.testing.assert_array_equal(third.features(cases), found)
    assert "reader" in vars(third)


def test_what_features_depend_on_is_in_the_name_of_their_file(folder, tmp_path):
    for settings in ({}, {"layers": (1,)}, {"poolings": ("last",)}, {"dtype": "bfloat16"}, {"chat_template": "plain"}):
        library(folder, tmp_path, **settings).features([case("1", "a")])
    assert len(list(tmp_path.rglob("*.npy"))) == 5


def test_a_tokenizer_without_a_template_gets_the_plain_one(tmp_path):
    bare = tiny.save_base(tmp_path / "bare", template=None)
    named = library(bare, tmp_path / "cache", chat_template="plain")
    assert library(bare, tmp_path / "cache").rendering == named.rendering


def test_a_long_text_is_read_to_its_cut(folder, tmp_path):
    long = Case(prompt=prompt("1"), responses=(Response(id="a", text="word " * 400),))
    assert np.isfinite(library(folder, tmp_path, max_length=32).features([long])).all()


def test_a_cache_that_cannot_be_written_is_named(folder, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OutputError, match="cache"):
        library(folder, tmp_path / "file").features([case("1", "a")])
