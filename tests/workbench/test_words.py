"""The words of the workbench's pages: both languages everywhere, and the terms of the glossary in Chinese."""

import re
import tomllib

import pytest

from steelyard.workbench.views.pages import FOLDER, words_of

# Terms that the glossary (docs/words.zh.md) replaces: response, verdict, and a prompt cut short.
_OTHER_TERMS = re.compile(r"回复|裁决|提示(?!词)|大模型|[\u4e00-\u9fff][,:;?!()]")


def test_pages_have_both_languages_with_the_same_places_for_values():
    english, chinese = words_of("en"), words_of("zh")
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert sorted(re.findall(r"{(\w*)}", text)) == sorted(re.findall(r"{(\w*)}", chinese[key])), key


@pytest.mark.parametrize("name", ["words.toml", "rubric.toml", "demo_guidelines.toml", "questions.toml"])
def test_chinese_words_are_those_of_the_glossary(name):
    def texts(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from (text for each in value.values() for text in texts(each))
        elif isinstance(value, list):
            yield from (text for each in value for text in texts(each))

    (path,) = FOLDER.rglob(name)
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    assert [text for text in texts(table) if _OTHER_TERMS.search(text)] == []
