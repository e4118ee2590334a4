"""Cleaning: each rule on an answer that breaks it and on one that does not, and what happens to the evidence."""

import string
import tomllib
from collections import Counter
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from each_value import each
from steelyard.core.checks import check_case
from steelyard.core.errors import ConfigError
from steelyard.core.types import Case, Judgment, Message, Pair, Prompt, Rating, Response
from steelyard.io.cleaned_lines import rule_measures
from steelyard.report.page import section_texts
from steelyard.responses.cleaning import clean_case
from steelyard.responses.lengths import LengthBounds, length_bin, usual_lengths
from steelyard.responses.phrases import MASK
from steelyard.responses.rules import RULES, chosen_rules
from strategies import judgment

MEASURES = rule_measures("scripts", LengthBounds(5, 2000))
QUESTION = "Tell me how bread is baked, please, with every step."
GOOD = "Mix flour, water, salt and yeast. Let the dough rise for an hour. Bake it for forty minutes in a hot oven."


def case_of(*texts, prompt=QUESTION, language="en", **fields):
    prompt_fields = {name: fields.pop(name) for name in ("category", "source") if name in fields}
    return Case(
        prompt=Prompt(id="p", messages=(Message(role="user", content=prompt),), language=language, **prompt_fields),
        responses=tuple(
            Response(id=name, text=text) for name, text in zip(string.ascii_lowercase, texts, strict=False)
        ),
        **fields,
    )


def broken(text, rules=RULES, measures=MEASURES, meta=None, **fields):
    case = case_of(text, **fields)
    if meta:
        case = Case(prompt=case.prompt, responses=(Response(id="a", text=text, meta=meta),))
    return {row.rule for row in clean_case(case, measures, rules).rows}


@each(
    ("rule", "text", "fields"),
    [
        ("empty", " \n。", {}),
        ("template_leftover", f"{GOOD}<|im_end|>", {}),
        ("template_leftover", f"{GOOD}\n### Response:\nMore.", {}),
        ("garbled", f"{GOOD} \ufffd\ufffd", {}),
        ("garbled", "Der Bäcker mischt Mehl und Wasser für das große Brot.".encode().decode("cp1252", "replace"), {}),
        ("garbled", f"{GOOD} \ud83d", {}),
        ("repeated_text", GOOD + " And then you bake it." * 20, {}),
        ("repeated_lines", "\n".join(f"{number}. Knead the dough well." for number in range(9)), {}),
        ("compressible", "and so on " * 200, {}),
        ("wrong_language", "Сначала смешайте муку с водой, затем дайте тесту подняться.", {}),
        ("wrong_language", GOOD, {"prompt": "请告诉我怎样烤面包，写出每一步。", "language": "zh"}),
        ("code_switched", "先把面粉和水混合，然后 let the dough rise for an hour，最后放进烤箱烤四十分钟就好了。",
         {"prompt": "请告诉我怎样烤面包，写出每一步。", "language": "zh"}),
        ("misplaced_marks", "dough the , mix . and oven , bake ; hot it the", {}),
        ("stopped_at_limit", GOOD, {"meta": {"finish_reason": "length"}}),
        ("stopped_at_limit", GOOD, {"meta": {"samples": [{"end": "length"}]}}),
        ("open_block", f"{GOOD}\n```python\nbake(", {}),
        ("open_bracket", f"{GOOD} Then wait (about an hour.", {}),
        ("no_final_mark", "Mix flour and water. Let the dough rise for an", {}),
        ("no_final_mark", "先把面粉和水混合。然后让面团发酵一个小时，再把面团", {"language": "zh"}),
        ("no_final_mark", "1. Mix the flour.\n2. Knead the dough.\n3. Bake it for forty", {}),
        ("no_final_mark", "Mix flour and water.\n\nLet the dough rest for an hour", {}),
        ("no_final_mark", "You need flour, water,", {}),
        ("no_final_mark", "Er backt das Brot in der", {"language": "de", "prompt": "Wie backt er Brot?"}),
        ("prompt_echo", f"{QUESTION} {GOOD}", {}),
        ("refusal", "I'm sorry, but I can't help with that.", {}),
        ("refusal", "抱歉，我无法回答这个问题。", {"prompt": "怎样烤面包？", "language": "zh"}),
        ("too_short", "Ok.", {}),
        ("too_long", " ".join(f"Step {number} is to do thing {number * 7919}." for number in range(200)), {}),
        ("names_model", f"As an AI developed by OpenAI, I like bread. {GOOD}", {}),
    ],
)  # fmt: skip
def test_a_broken_answer_breaks_its_rule_and_a_good_one_none(rule, text, fields):
    assert rule in broken(text, **fields)
    assert broken(GOOD) == set()


def test_every_rule_is_tested_and_has_its_words_in_both_languages():
    words = section_texts()
    for rule in RULES:
        for key in (f"rule_{rule.name}", f"measures_{rule.name}"):
            assert words[key]["en"]
            assert words[key]["zh"]
        assert words[f"measures_{rule.name}"]["en"].startswith(rule.measures[:10])


@pytest.mark.parametrize(
    "text",
    [
        "Use `print('<|im_end|>')` to see the mark. It ends a turn.",
        "Run this:\n```python\nprint('你好，世界')\n```\nIt greets the world.",
        "The word “сначала” means first, and «затем» means then. Both are Russian words.",
        "The area is $\\frac{1}{2}ab$ and the sum is \\[ x + y \\]. See https://example.org/путь for more.",
        "Ingredients:\n- flour\n- water\n- salt",
        "42",
        "Bake it at 220 °C for 40 minutes :)",
    ],
)
def test_code_formulas_quotations_lists_and_short_facts_are_no_faults(text):
    assert broken(text, measures=rule_measures("scripts", LengthBounds(1, 2000))) == set()


@each(
    ("text", "language"),
    [
        ("Pedestrian dies in hospital after car crash as man arrested", "en"),
        ("Wichtige Gräber aus einer wichtigen Zeit", "de"),
        ("我没有在大学里受教育的经历", "zh"),
        ("Number of students hits new high - Chinanews.com", "en"),
        ("See the documentation. It is at https://example.org/bread/oven", "en"),
        ("See the documentation. It is at https://example.org/bread/", "en"),
        ("Bread is easy. Have fun baking 🍞🎉", "en"),
        ("It is baked. It costs 5 €", "en"),
        ("She said it twice. “Never bake it without salt”", "en"),
        ("- Mix the flour;\n- Knead the dough;\n- Bake it;", "en"),
        ("Here is what you need.\n\n- white flour\n- cold water\n- a very hot oven", "en"),
        ("# How to bake\n\nMix, knead and bake.\n\n## Further reading about bread", "en"),
        ("Thank you for the recipe. I will bake it.\n\nKind regards,\nJane Baker", "en"),
        ("Bake it now:\n\nbread.bake(minutes=40)  # takes a while", "en"),
        ("ขนมปังทำจากแป้งและน้ำ. นวดแป้งแล้วพักไว้หนึ่งชั่วโมงแล้วอบในเตา", "th"),
        ("ขนมปังทำจากแป้งและน้ำ. นวดแป้งแล้วพักไว้หนึ่งชั่วโมงแล้วอบในเตา", None),
        ("รับประทานได้แล้ว", "en"),
        ("春眠不觉晓\n处处闻啼鸟\n夜来风雨声\n花落知多少", "zh"),
    ],
)
def test_endings_without_a_final_mark_that_are_no_cuts(text, language):
    assert "no_final_mark" not in broken(text, language=language)


def test_names_and_glosses_in_latin_letters_are_no_code_switching():
    text = "ChatGPT 和 BERT 都是语言模型，它们使用 Transformer 结构（a kind of neural network）处理文本。"
    assert "code_switched" not in broken(text, prompt="什么是语言模型？", language="zh")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Функция remove_vowels возвращает строку без гласных.", "ru"),
        ("الدالة sum_to_n تجمع الأعداد من 1 إلى n وتعيد الناتج.", "ar"),
        ("פונקציה fibfib(n) מחזירה את האיבר במקום n ברצף, כמו fibfib(5).", "he"),
        ("函数 prime_fib 返回第 n 个既是斐波那契数又是质数的数。", "zh"),
    ],
)
def test_names_of_variables_and_functions_are_no_code_switching(text, language):
    assert "code_switched" not in broken(text, language=language)
    switched = f"{text} Then let the dough rise for an hour and bake it well."
    assert {"code_switched", "wrong_language"} & broken(switched, language=language)


def test_a_prompt_that_names_a_language_may_be_answered_in_it():
    assert broken(GOOD, prompt="请用英语介绍怎样烤面包。", language="zh") == set()


def test_japanese_without_kana_is_not_japanese():
    text = "首先混合面粉和水，然后讓麵團發酵一個小時，最後放入烤箱烘烤四十分鐘，取出後放涼即可食用。"
    assert "wrong_language" in broken(text, prompt="パンの焼き方は？", language="ja")


def test_languages_of_one_script_are_told_apart():
    measures = rule_measures("identify", LengthBounds(5, 2000))
    german = "Mischen Sie Mehl, Wasser und Salz. Lassen Sie den Teig eine Stunde lang gehen und backen Sie das Brot."
    assert "wrong_language" in broken(german, measures=measures)
    assert broken(german, measures=measures, language="de", prompt="Wie backt man ein gutes Brot im Ofen?") == set()
    assert "wrong_language" not in broken(german)  # scripts alone do not decide


def test_refusals_of_safety_prompts_are_answers():
    refusal = "I'm sorry, but I can't help with that."
    assert broken(refusal, category=("Safety", "refusals-dangerous")) == set()
    long = f"{refusal} {' '.join(f'Thing {number} is said about it.' for number in range(90))}"
    assert "refusal" not in broken(long)


@each(
    ("language", "text"),
    [
        ("ar", "أنا آسف، لا أستطيع المساعدة في ذلك."),
        ("cs", "Omlouvám se, ale s tím nemohu pomoci."),
        ("de", "Es tut mir leid, aber dabei kann ich nicht helfen."),
        ("el", "Λυπάμαι, αλλά δεν μπορώ να βοηθήσω με αυτό."),
        ("es", "Lo siento, pero no puedo ayudar con eso."),
        ("fa", "متأسفم، اما نمی‌توانم در این مورد کمک کنم."),
        ("fr", "Je suis désolé, mais je ne peux pas vous aider."),
        ("he", "אני מצטער, אבל אני לא יכול לעזור בזה."),
        ("hi", "क्षमा करें, मैं इसमें मदद नहीं कर सकता।"),
        ("id", "Maaf, saya tidak bisa membantu dengan itu."),
        ("it", "Mi dispiace, ma non posso aiutarti con questo."),
        ("ja", "申し訳ありませんが、そのご質問にはお答えできません。"),
        ("ko", "죄송하지만, 그 요청은 도와드릴 수 없습니다."),
        ("nl", "Het spijt me, maar daar kan ik niet bij helpen."),
        ("pl", "Przykro mi, ale nie mogę w tym pomóc."),
        ("pt", "Desculpe, mas não posso ajudar com isso."),
        ("ro", "Îmi pare rău, dar nu pot să ajut cu asta."),
        ("ru", "Извините, но я не могу помочь с этим."),
        ("tr", "Üzgünüm, ama bu konuda yardımcı olamam."),
        ("uk", "Вибачте, але я не можу з цим допомогти."),
        ("vi", "Xin lỗi, nhưng tôi không thể giúp việc đó."),
        ("zh", "很抱歉，我不能提供这方面的帮助。"),
    ],
)
def test_refusals_are_known_in_every_language(language, text):
    assert "refusal" in broken(text, language=language)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("I am ChatGPT, a model by OpenAI. I like bread.", f"I am {MASK}, a model by {MASK}. I like bread."),
        ("我是由智谱AI公司训练的语言模型ChatGLM，你好。", f"我是由{MASK}训练的语言模型{MASK}，你好。"),
        ("Ich bin Claude, ein Assistent von Anthropic.", f"Ich bin {MASK}, ein Assistent von {MASK}."),
        ("저는 OpenAI에서 개발한 ChatGPT입니다.", f"저는 {MASK}에서 개발한 {MASK}입니다."),
        ("Bread is good. Trained by OpenAI.", f"Bread is good. Trained by {MASK}."),
        ("Hi, Bard here! Bread is good.", f"Hi, {MASK} here! Bread is good."),
        ("通义千问很高兴为您服务！面包很好。", f"{MASK}很高兴为您服务！面包很好。"),
        ("面包很好。以上内容由文心一言生成。", f"面包很好。以上内容由{MASK}生成。"),
        ("Developed by Google, the kernel is fast.", "Developed by Google, the kernel is fast."),
        ("由百度开发的浏览器已经下线。", "由百度开发的浏览器已经下线。"),
        ("Hey, Siri! What time is it?", "Hey, Siri! What time is it?"),
        ("The first search engine I liked was not Google.", "The first search engine I liked was not Google."),
        ("OpenAI released GPT-4 in 2023.", "OpenAI released GPT-4 in 2023."),
        ("最早的中文搜索引擎是百度。", "最早的中文搜索引擎是百度。"),
    ],
)
def test_names_are_masked_where_an_answer_says_what_it_is(text, masked):
    only = [rule for rule in RULES if rule.name == "names_model"]
    cleaned = clean_case(case_of(text), MEASURES, only)
    assert cleaned.case.responses[0].text == masked
    assert [row.original.text for row in cleaned.rows] == ([text] if masked != text else [])
    assert cleaned.case.responses[0].id == "a"


def test_names_stay_where_ratings_mark_places_in_the_text():
    text = "I am ChatGPT, and I like bread."
    rating = Rating(response="a", rater="r", kind="human", dimension="d", value=1, spans=((5, 12, "x", None),))
    cleaned = clean_case(case_of(text, ratings=(rating,)), MEASURES, RULES)
    assert cleaned.case.responses[0].text == text
    assert cleaned.noted["names not masked: spans of ratings count characters"] == 1


def test_evidence_of_dropped_responses_leaves_with_them_and_is_counted():
    case = case_of(
        GOOD,
        "",
        GOOD + " Enjoy your bread.",
        judgments=(
            judgment("a>b"),
            judgment("a>c", shown=("a", "b", "c")),
            Judgment(left="c", right="b", verdict="none", judge="j", kind="llm", reason="failed"),
        ),
        ratings=(Rating(response="b", rater="r", kind="human", dimension="d", value=1),),
        ranking=(("a",), ("c", "b")),
        pairs=(Pair(better="a", worse="b"), Pair(better="a", worse="c")),
    )
    cleaned = clean_case(case, MEASURES, RULES)
    left = check_case(cleaned.case)
    assert [response.id for response in left.responses] == ["a", "c"]
    assert [(each.left, each.right, each.shown) for each in left.judgments] == [("a", "c", None)]
    assert (left.ratings, left.ranking, left.pairs) == ((), (("a",), ("c",)), (Pair(better="a", worse="c"),))
    assert cleaned.dropped == {"empty": 1}
    assert cleaned.noted == {
        "judgments of dropped responses": 2, "ratings of dropped responses": 1, "pairs of dropped responses": 1,
        "ranks of dropped responses": 1, "orders shown with a dropped response": 1,
    }  # fmt: skip


def test_a_prompt_with_one_response_left_is_kept_or_dropped():
    case = case_of(GOOD, "")
    kept = clean_case(case, MEASURES, RULES)
    assert [response.id for response in kept.case.responses] == ["a"]
    gone = clean_case(case, MEASURES, RULES, drop_prompts_with_few=True)
    assert gone.case is None
    assert gone.dropped.total() == 2
    single = clean_case(case_of(GOOD), MEASURES, RULES, drop_prompts_with_few=True)
    assert single.case is not None  # no rule dropped any of it


def test_actions_and_limits_change_a_rule():
    refusal = "I'm sorry, but I can't help with that."
    counted = clean_case(case_of(refusal), MEASURES, chosen_rules({"refusal": "count"}, {}))
    assert counted.case.responses[0].text == refusal
    assert counted.noted == {"refusal": 1}
    assert broken(refusal, chosen_rules({"refusal": "off"}, {})) == set()
    assert broken(refusal, chosen_rules({}, {"refusal": 5})) == set()


@pytest.mark.parametrize(
    ("actions", "limits"),
    [({"refusals": "drop"}, {}), ({}, {"nothing": 1}), ({}, {"too_long": 10}), ({"empty": "mask"}, {})],
)
def test_impossible_settings_are_refused(actions, limits):
    with pytest.raises(ConfigError, match="clean"):
        chosen_rules(actions, limits)


def test_lengths_are_those_of_the_group_the_language_or_the_file():
    counts = Counter({(("a", "en"), length_bin(100)): 50, (("b", "en"), length_bin(1600)): 3})
    fine = LengthBounds(10, 200)
    bounds = usual_lengths(counts, spread=2.0, fewest=20, always_fine=fine)
    # All of group a are about 100 long: quartiles at least half a unit of the logarithm apart, twice that beyond.
    assert bounds["a", "en"].shortest == 10
    assert 250 < bounds["a", "en"].longest < 300
    assert bounds["b", "en"] == bounds["a", "en"]  # too few of its own: those of the language
    few = usual_lengths(Counter({(("a", "en"), 5): 2}), spread=2.0, fewest=20, always_fine=fine)
    assert few["a", "en"] == LengthBounds(1, 2000)


@settings(max_examples=150)
@given(st.text(max_size=300), st.sampled_from(["en", "zh", "ja", "th", "ar", "fr", None, "xx"]))
def test_any_text_is_cleaned(text, language):
    cleaned = clean_case(case_of(text, GOOD, language=language), MEASURES, RULES)
    check_case(cleaned.case)
    assert len(cleaned.case.responses) + cleaned.dropped.total() == 2


@pytest.mark.parametrize(
    "piece", ["(", "“", "\\[", "\\begin{a}", "$", "<a", "=1", "。，", "a b. ", "I am ", "```\n", "\n", "x", "1. a\n"]
)
def test_hostile_texts_take_time_linear_in_their_length(piece):
    # A pattern of quadratic time would not return from a text of this length while the tests run.
    text = f"a1 {piece * (300_000 // len(piece))}"
    assert broken(text)


def test_the_phrases_cover_the_languages_of_m_rewardbench():
    table = tomllib.loads((files("steelyard") / "data" / "cleaning.toml").read_text("utf-8"))
    languages = ["ar", "cs", "de", "el", "en", "es", "fa", "fr", "he", "hi", "id", "it", "ja", "ko", "nl", "pl"]
    languages += ["pt", "ro", "ru", "tr", "uk", "vi", "zh"]
    assert sorted(table["refusals"]) == languages


def test_the_manifest_has_no_original_of_a_response_that_was_not_masked():
    rating = Rating(response="a", rater="r", kind="human", dimension="d", value=1, spans=((5, 12, "x", None),))
    case = case_of(f"As an AI developed by OpenAI, I bake. {GOOD}", GOOD, ratings=(rating,))
    cleaned = clean_case(case, MEASURES, RULES)
    assert cleaned.case.responses == case.responses
    assert [(row.rule, row.original) for row in cleaned.rows] == [("names_model", None)]
