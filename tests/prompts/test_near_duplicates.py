import json
from importlib.resources import files
from random import Random

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.prompts.near_duplicates import Links, jaccard, near_duplicates, rows_a_band, shingles

ENGLISH = "Write a short poem about the autumn rain that falls on the old harbour of my home town"
CHINESE = "请写一首关于秋天的雨落在我家乡旧港口的短诗,要求押韵并且不超过八行"
HEBREW = "כתוב שיר קצר על גשם הסתיו היורד על הנמל הישן של עיר הולדתי"


def plain(text, size):
    return {text[start : start + size] for start in range(max(1, len(text) - size + 1))}


def plain_jaccard(first, second, size):
    mine, theirs = plain(first, size), plain(second, size)
    return len(mine & theirs) / len(mine | theirs)


@pytest.mark.parametrize(("text", "size"), [(ENGLISH, 5), (CHINESE, 2), (HEBREW, 5), ("日本の秋の雨について", 2)])
def test_similarity_is_that_of_plain_sets_of_character_n_grams(text, size):
    lower = text.lower()
    other = lower.replace("雨", "雪").replace("rain", "snow").replace("קצר", "ארוך")
    assert len(shingles(text)) == len(plain(" ".join(lower.split()), size))
    assert jaccard(shingles(lower), shingles(other)) == pytest.approx(plain_jaccard(lower, other, size))


def test_case_width_and_spacing_do_not_count():
    assert jaccard(shingles("Ｈello  World"), shingles("hello\nworld")) == 1.0
    assert len(shingles("")) == 0
    assert jaccard(shingles(""), shingles("  ")) == 0.0


def test_near_duplicates_of_each_script_are_found_and_others_are_not():
    texts = [ENGLISH, CHINESE, HEBREW, "", ENGLISH + " please", CHINESE + "。谢谢", HEBREW + " בבקשה", "", "🌧️"]
    found = near_duplicates(texts, 0.7)
    assert [(one.first, one.second) for one in found] == [(0, 4), (1, 5), (2, 6)]
    assert found[0].similarity == pytest.approx(plain_jaccard(ENGLISH.lower(), ENGLISH.lower() + " please", 5))


words = st.sampled_from(["alpha", "beta", "gamma", "delta", "秋天", "下雨", "港口", "诗歌"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(words, min_size=1, max_size=8).map(" ".join), max_size=14), st.randoms())
def test_every_link_is_true_and_the_groups_do_not_depend_on_the_order(texts, random):
    threshold = 0.6
    found = near_duplicates(texts, threshold)
    for one in found:
        assert one.similarity == jaccard(shingles(texts[one.first]), shingles(texts[one.second])) >= threshold
    order = list(range(len(texts)))
    random.shuffle(order)
    again = near_duplicates([texts[index] for index in order], threshold)
    assert components(len(texts), found) == components(len(texts), again, order)


def components(number, found, order=None):
    graph = networkx.Graph()
    graph.add_nodes_from(range(number))
    graph.add_edges_from(
        (one.first, one.second) if order is None else (order[one.first], order[one.second]) for one in found
    )
    return {frozenset(part) for part in networkx.connected_components(graph)}


def test_of_a_thousand_pairs_above_the_threshold_almost_all_are_found():
    random = np.random.default_rng(3)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz "))
    originals = ["".join(random.choice(letters, 80)) for _ in range(500)]
    changed = [text[:70] + "".join(random.choice(letters, 10)) for text in originals]
    texts = originals + changed
    above = {
        (index, index + 500)
        for index in range(500)
        if jaccard(shingles(texts[index]), shingles(texts[index + 500])) >= 0.7
    }
    found = {(one.first, one.second) for one in near_duplicates(texts, 0.7)}
    assert len(above) > 300
    assert found <= above  # 80 random characters share nothing by chance
    assert len(found) >= 0.995 * len(above)


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_bands_miss_one_in_a_thousand_at_the_threshold_or_are_single_hashes(threshold):
    rows = rows_a_band(threshold)
    assert rows == 1 or (1 - threshold**rows) ** (128 // rows) <= 0.001
    assert rows == 8 or (1 - threshold ** (rows + 1)) ** (128 // (rows + 1)) > 0.001


def test_links_join_through_others():
    links = Links(5)
    links.join(0, 3)
    links.join(3, 4)
    assert links.groups() == [[0, 3, 4], [1], [2]]


JAPANESE = (
    "日本の四季について、留学生にも分かるように三つの段落で説明してください。",
    "京都を二日間で回る旅行の計画を、移動時間も含めて立ててください。",
    "電車の中で財布を落とした場合、最初に何をすればよいですか。",
    "次の文章を丁寧なメールに書き直してください。「明日の会議に出られません」",
    "Pythonでリストの中から重複を取り除く関数を書き、計算量を説明してください。",
    "カレーライスを四人分作るための材料と手順を教えてください。",
    "光合成の仕組みを小学校五年生に説明する短い文章を書いてください。",
    "夏目漱石の「こころ」の主題を三百字以内でまとめてください。",
    "初めて一人暮らしをする学生に必要な家具と家電を優先順位の順に挙げてください。",
    "円安が輸出企業と輸入企業に与える影響の違いを説明してください。",
    "猫が急に餌を食べなくなったときに考えられる原因は何ですか。",
    "面接で自分の短所を聞かれたときの答え方を例とともに教えてください。",
)
ARABIC = (
    "اشرح لي الفرق بين الأسهم والسندات بلغة بسيطة تناسب المبتدئين",
    "اكتب رسالة رسمية إلى مدير المدرسة أطلب فيها إجازة لمدة أسبوع",
    "ما هي أهم أسباب الحرب العالمية الأولى وكيف أثرت في المنطقة العربية؟",
    "اقترح خطة لتعلم اللغة الإنجليزية خلال ستة أشهر مع ساعة واحدة في اليوم",
    "كيف أستطيع إعداد طبق الكبسة لأربعة أشخاص في أقل من ساعة؟",
    "لخص رواية الأيام لطه حسين في ثلاث فقرات قصيرة",
    "ما الآثار الجانبية المحتملة لتناول المضادات الحيوية دون وصفة طبية؟",
    "اكتب قصيدة قصيرة عن أول أيام الخريف في القاهرة",
    "كيف تعمل الألواح الشمسية ولماذا تقل كفاءتها في الأيام الحارة؟",
    "أريد نصائح لإدارة الوقت أثناء الاستعداد لامتحانات آخر العام",
    "ترجم الجملة الآتية إلى الفرنسية: أحب أن أقرأ الكتب قبل النوم",
    "ما حقوق المستأجر إذا أراد المالك إنهاء العقد قبل موعده؟",
)
HARAKAT = "\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652"


def inserted(text, characters, random, share=0.3):
    return "".join(
        letter + (random.choice(characters) if letter > "\x7f" and letter.isalpha() and random.random() < share else "")
        for letter in text
    )


def prompts_in(language):
    if language == "zh":
        lines = files("steelyard").joinpath("data/corpus.zh.jsonl").read_text("utf-8").splitlines()
        texts = [json.loads(line)["messages"][0]["content"] for line in lines]
        return [text for text in texts if len(text) > 20][:60]
    return [text for text in {"ja": JAPANESE, "ar": ARABIC}[language] for _ in range(5)]


CHANGES = {
    "white space": lambda text, random: inserted(text, [" ", "\u3000", "\n"], random),
    "spaces between words": lambda text, random: text.replace(" ", random.choice(["  ", "\n", "\u00a0"])) + " ",
    "zero width": lambda text, random: inserted(text, ["\u200b", "\u200c", "\u200d", "\ufeff", "\u2060"], random),
    "bidi marks": lambda text, random: inserted(text, ["\u200e", "\u200f", "\u202b", "\u061c"], random),
    "vowel signs": lambda text, random: inserted(text, HARAKAT, random, 1.0),
    "alef forms": lambda text, random: text.translate(str.maketrans("أإآ", "ااا")),
    "tatweel": lambda text, random: inserted(text, ["ـ", "ـــ"], random),
}


@pytest.mark.parametrize(
    ("language", "change"),
    [
        *((language, "white space") for language in ("zh", "ja")),
        *(("ar", change) for change in ("spaces between words", "bidi marks", "vowel signs", "alef forms", "tatweel")),
        *((language, "zero width") for language in ("zh", "ja", "ar")),
    ],
)
def test_all_copies_in_another_spelling_are_near_duplicates(language, change):
    originals, random = prompts_in(language), Random(5)
    assert len(originals) == 60
    copies = [CHANGES[change](text, random) for text in originals]
    assert sum(copy != text for text, copy in zip(originals, copies, strict=True)) >= 55
    found = [near_duplicates([text, copy], 0.8) for text, copy in zip(originals, copies, strict=True)]
    assert sum(map(len, found)) == 60
