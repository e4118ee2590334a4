"""Labels of verdicts on two answers, in words of many languages, and by the names of the answers."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from steelyard.core.types import Verdict
from steelyard.curation.answer_names import column_word

_WORDS: Mapping[Verdict, str] = {
    "left": (
        "1 a left first model_a model_1 response_a response_1 answer_a answer_1 output_a output_1 assistant_a "
        "assistant_1 option_a option_1 a>b b<a 1>2 2<1 a_is_better left_is_better first_is_better "
        "左 左边更好 左边 左侧 左邊 第一 第一个 前者 前者更好 甲 左がいい 왼쪽 "
        "izquierda gauche links слева أيسر الأول الأولى أ पहला प्रथम क א ראשונה הראשונה а 첫_번째 첫번째 一つ目 1つ目 "
        "primera primero primeira primeiro première premier prima primo erste erster первый"
    ),
    "right": (
        "2 b right second model_b model_2 response_b response_2 answer_b answer_2 output_b output_2 assistant_b "
        "assistant_2 option_b option_2 b>a a<b 2>1 1<2 b_is_better right_is_better second_is_better "
        "右 右边更好 右边 右侧 右邊 第二 第二个 后者 后者更好 乙 右がいい 오른쪽 "
        "derecha droite rechts справа أيمن الثاني الثانية ب दूसरा द्वितीय ख ב שנייה שניה השנייה השניה б 두_번째 두번째 "
        "二つ目 2つ目 segunda segundo deuxième seconde second seconda secondo zweite zweiter второй"
    ),
    "tie": (
        "tie equal same tied draw both neither a=b b=a 1=2 tie_(bothbad) tie_(both_bad) bothbad both_bad "
        "tie_(inconsistent) 1.5 both_are_good both_are_bad equally neutral both_good both_equal bothgood "
        "about_the_same equally_good equally_bad no_preference no_difference tie_(both_good) "
        "平局 平 平手 打平 持平 相同 相等 一样 一樣 一样好 一样差 差不多 不分上下 难分高下 "
        "都好 都不好 都差 两个都好 两个都不好 两者都好 两者都差 两者相当 两者一样 一样 同样好 同样差 无差别 没有差别 "
        "无明显差异 难以区分 "
        "引き分け 同じ 両方良い 両方悪い どちらも同じ どちらも良い どちらも悪い 同程度 무승부 비김 같음 비슷함 "
        "둘_다_좋음 둘_다_나쁨 "
        "empate igual iguales égalité égal égales unentschieden gleich gleichwertig gleich_gut beide_gleich "
        "parità pari ничья равны одинаково одинаковы "
        "同点 同等 동점 동등 تعادل متعادل متعادلة متعادلان متساو متساوي متساوية متساويان متساويتان बराबर "
        "तुल्य תיקו שווה שוות"
    ),
}
LABELS: Mapping[str, Verdict] = {
    column_word(word): verdict for verdict, words in _WORDS.items() for word in words.split()
}
"""Labels of verdicts, in lower case with ``_`` for spaces. Zero is none of them: its meaning differs between sets."""
_COMPARED = re.compile(r"\s*([<>=])\1*\s*")
"""A sign of comparison, of any strength: ``A >>> B``."""
_PHRASE = re.compile(
    r"(?:the_)?(?:(?:model|response|answer|assistant|option|output|candidate|system|text|reply)[_-]?)?"
    r"(a|b|1|2|left|right|first|second)(?:_(?:one|response|answer|model))?(?:_is)?"
    r"(?:_(?:slightly|somewhat|much|clearly|significantly|far))*(?:_(?:better|best|wins?|won|preferred))?"
)
"""A label in words, in lower case with ``_`` for spaces, such as ``response_a_is_much_better``."""


def label_word(label: str) -> str:
    """Return a label as a word of ``LABELS``: in lower case, without brackets, strength, width and words around it.

    Digits of any script are those of ASCII.
    """
    digits = "".join(str(unicodedata.decimal(sign, sign)) for sign in column_word(label))
    word = _COMPARED.sub(lambda sign: sign[1], digits.removesuffix(".0").strip("[]"))
    phrase = _PHRASE.fullmatch(word.replace(" ", "_"))
    return phrase[1] if phrase else word.replace(" ", "_")


def only_label(cell: Any) -> Any:
    """Return the only label of a list, as Doccano exports it, or of its JSON text; null for an empty list."""
    labels = cell
    if isinstance(cell, str) and cell.strip().startswith(('["', "[]")):
        try:
            labels = msgspec.json.decode(cell.strip())
        except msgspec.DecodeError:
            return cell
    if not isinstance(labels, list) or len(labels) > 1:
        return cell
    return labels[0] if labels else None


def choice_of(label: str, names: Sequence[str]) -> Verdict | None:
    """Return the verdict of a label on two answers of these names; null for a number, which may be a rating."""
    word = label_word(label)
    words = None if label.strip().isdecimal() else LABELS.get(word)
    # The letter of a phrase may be a name: of "b is better", where the first answer is response_b.
    return (named_side(label, names) or named_side(word, names) or words) if len(names) == 2 else None


def named_side(label: str, names: Sequence[str]) -> Verdict | None:
    """Return the side whose name is the label, or ends in it where the two names differ: ``А`` of ``Ответ А``.

    Digits at the end do not count: 0 and 1 have other meanings in many sets.
    """
    word, folded = label.strip().casefold(), [name.strip().casefold() for name in names]
    if len(folded) != 2 or folded[0] == folded[1]:
        return None
    ends = folded
    for step in (1, -1):  # without the beginning that both share, then without the end
        turned = [name[::step] for name in ends]
        shared = len([*takewhile(lambda pair: pair[0] == pair[1], zip(*turned, strict=False))])
        ends = [name[shared:][::step] for name in turned]
    for pair in (folded, ends):
        if word in pair and not (pair is ends and word.isdecimal()):
            return ("left", "right")[pair.index(word)]
    return None
