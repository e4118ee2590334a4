import re
import tomllib
from pathlib import Path

import pytest

from steelyard.core.errors import ConfigError
from steelyard.plugins.judges._texts import criterion_of, is_chinese, language_name, style_named, styles, texts_in
from steelyard.plugins.published_models import published_models
from strategies import prompt

SLOT = re.compile(r"\{\w+\}")


def test_both_languages_say_the_same_things():
    english, chinese = texts_in("en"), texts_in("zh")
    for part in ("task", "told", "form", "part", "criteria"):
        assert set(getattr(english, part)) == set(getattr(chinese, part)), part
    for part in ("task", "told"):
        for name, text in getattr(english, part).items():
            assert set(SLOT.findall(text)) == set(SLOT.findall(getattr(chinese, part)[name])), name
    for name, points in english.criteria.items():
        assert len(points) == len(chinese.criteria[name])


def test_every_language_has_a_chinese_name():
    root = Path(__file__).parents[3] / "src/steelyard/data/languages.toml"
    assert set(texts_in("zh").languages) == set(tomllib.loads(root.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("code", "english", "chinese"),
    [
        ("arb_Arab", "Arabic", "阿拉伯语"),
        ("zh", "Chinese (simplified)", "简体中文"),
        ("zho_Hant", "Chinese (traditional)", "繁体中文"),
        ("DE", "German", "德语"),
        ("xx-unknown", "xx-unknown", "xx-unknown"),
    ],
)
def test_languages_by_name(code, english, chinese):
    assert (language_name(code, "en"), language_name(code, "zh")) == (english, chinese)


def test_chinese():
    assert is_chinese("zho_Hans")
    assert not is_chinese("ja")
    assert not is_chinese(None)


@pytest.mark.parametrize(
    ("category", "subset", "criterion"),
    [
        (("代码",), None, "code"),
        (("Reasoning",), "hep-python", "code"),
        (("Reasoning",), "math-prm", "reasoning"),
        (("推理/数学",), None, "reasoning"),
        (("Safety",), "xstest-should-respond", "safety"),
        (("安全",), None, "safety"),
        (("复杂指令",), None, "instructions"),
        (("知识/理解",), None, "knowledge"),
        (("语言",), None, "language"),
        (("开放", "创意写作"), None, "language"),
        ((), "easy_de_en", "language"),
        ((), None, "general"),
        (("Something else",), None, "general"),
    ],
)
def test_criteria_by_category(category, subset, criterion):
    assert criterion_of(prompt(category=category, subset=subset)) == criterion


def test_every_style_that_a_published_model_names_is_there():
    named = {row.settings["judge.style"] for row in published_models() if row.kind == "generative"}
    assert named
    assert named <= set(styles())
    wanted = {"gpt", "doubao", "qwen", "llama", "gemma", "mistral", "command_r", "aya"}
    assert wanted | {"skywork_critic", "compass_judger", "offset_bias"} <= set(styles())


def test_a_misspelt_style_is_told_the_nearest():
    with pytest.raises(ConfigError, match=r"did you mean 'mistral'"):
        style_named("mistrall")
