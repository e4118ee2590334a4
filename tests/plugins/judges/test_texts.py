import re
import tomllib
from pathlib import Path

import pytest

from each_value import each
from steelyard.core.errors import ConfigError
from steelyard.plugins.judges._texts import (
    criterion_of,
    is_chinese,
    language_name,
    style_named,
    styles,
    texts_in,
)
from steelyard.plugins.reward_models import published_models
from strategies import prompt

SLOT = re.compile(r"\{\w+\}")


def test_both_languages_say_the_same_things():
    english, chinese = texts_in("en"), texts_in("zh")
    for part in ("task", "instructions", "form", "part", "criteria"):
        assert set(getattr(english, part)) == set(getattr(chinese, part)), part
    for part in ("task", "instructions"):
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
        ("zh", "Chinese", "中文"),
        ("zho", "Chinese", "中文"),
        ("cmn", "Chinese", "中文"),
        ("zh-CN", "Chinese (simplified)", "简体中文"),
        ("zh_Hans", "Chinese (simplified)", "简体中文"),
        ("zho_Hant", "Chinese (traditional)", "繁体中文"),
        ("zh-HK", "Chinese (traditional)", "繁体中文"),
        ("DE", "German", "德语"),
        ("xx-unknown", "xx-unknown", "xx-unknown"),
    ],
)
def test_languages_by_name(code, english, chinese):
    assert (language_name(code, "en"), language_name(code, "zh")) == (english, chinese)


def test_chinese():
    assert is_chinese("zho_Hans")
    assert is_chinese("zh")
    assert not is_chinese("ja")
    assert not is_chinese(None)


CRITERIA = {
    "code": [
        "代码", "代码生成", "编程", "Code", "Code generation", "code_completion", "Programming", "hep-python",
        "hep-rust", "代码推理",
    ],
    "reasoning": [
        "推理", "数学", "推理/数学", "数学计算", "逻辑推理", "数理逻辑", "逻辑", "Reasoning",
        "Mathematical reasoning", "Mathematics", "math-prm", "math", "Logic puzzles", "Math word problems", "计算",
    ],
    "safety": [
        "安全", "内容安全", "Safety", "Harmlessness", "refusals-dangerous", "refusals-offensive",
        "xstest-should-refuse", "xstest-should-respond", "donotanswer", "safety-refuse", "safety-response",
    ],
    "instructions": [
        "复杂指令", "指令遵循", "Complex instructions", "complex_instructions", "Precise IF",
        "Instruction following",
    ],
    "knowledge": [
        "知识", "理解", "知识/理解", "语言理解", "阅读理解", "开放问答", "摘要总结", "常识", "Knowledge",
        "Understanding", "Factuality", "Open QA", "Closed QA", "Summarization", "Information Extraction",
    ],
    "language": [
        "语言", "文本创作", "写作", "创意写作", "翻译", "角色扮演", "文本改写", "Language", "Creative Writing",
        "Translation", "Role Playing", "Rewrite", "easy_de_en", "hard_zh_en",
    ],
    "general": [
        "Biological science", "Psychological counselling", "Technological history", "Pharmacy", "Harmony",
        "Barcode", "Aftermath", "Decoder", "Charm", "Calculus of variations", "Chat", "Chat Hard",
        "alpacaeval-easy", "alpacaeval-length", "mt-bench-med", "llmbar-natural", "llmbar-adver-GPTInst", "Focus",
        "Ties", "Helpfulness", "Something else", "其他", "开放", "计算机科学", "推理小说", "安全感",
        "code-switching", "code mixed",
    ],
}  # fmt: skip


@each("subset", [None, "human_instruction", "open_prompt", "Human Instruction"])
@each("criterion", CRITERIA)
def test_a_name_has_the_criteria_of_its_whole_words_in_any_part_of_cheemsbench(criterion, subset):
    found = {name: criterion_of(prompt(category=(name,), subset=subset)) for name in CRITERIA[criterion]}
    assert found == dict.fromkeys(CRITERIA[criterion], criterion)


@pytest.mark.parametrize(
    ("category", "subset", "criterion"),
    [
        (("Reasoning",), "hep-python", "code"),
        (("Reasoning",), "math-prm", "reasoning"),
        (("Chat Hard",), "llmbar-adver-manual", "general"),
        (("Safety",), "xstest-should-respond", "safety"),
        (("语言",), "human_instruction", "language"),
        ((), "human_instruction", "general"),
        (("开放", "创意写作"), None, "language"),
        (("Helpfulness", "Code", "Code Debugging"), "Pairwise_set", "code"),
        (("Harmlessness", "S1"), "BoN_set", "safety"),
        ((), "safety-response", "safety"),
        ((), None, "general"),
    ],
)
def test_criteria_by_category_and_subset(category, subset, criterion):
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
