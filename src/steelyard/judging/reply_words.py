"""A reply's own words: its text without thinking and quotations, and what a sentence does with a verdict.

A sentence may announce a verdict, negate it, or report it of an answer. The words are those of English and Chinese,
then of the other languages of M-RewardBench.

Every function takes time linear in the length of the text for any content: a reply may be written to stall the run.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

# Whole words, but parts of words where a language is
# written without spaces or with endings.
_NEGATION = re.compile(
    r"\b(?:not|never|neither|nor|no|cannot|worse|worst|inferior|loses?|reject(?:ed)?)\b|n['’]t\b|[不没非未]|较差|更差|最差|劣"
    r"|\b(?:ni|nunca|peor|pas|jamais|pire|nicht|keine?|nie|schlechter\w*|non|peggior\w*|não|pior|niet|geen|slechter\w*"
    r"|gorsz\w*|není|ne|horší|nu|mai slab\w*|tidak|bukan|buruk|değil|kötü|не|нет|ни|хуже|гірш\w*|немає|δεν|όχι"
    r"|χειρότερ\w*|không|chẳng|kém)\b"
    r"|ない|ません|悪い|아니|않|없|못|나쁘|ليس|لا|أسوأ|غير|لم|لن|نیست|نمی|بدتر|לא|אינ|אין|גרוע|नहीं|मत|बदतर|खराब",
    re.IGNORECASE,
)
_ANNOUNCEMENT = re.compile(
    r"(?:(?:therefore|so|thus|hence|overall|finally|in conclusion|in summary|to conclude|based on this|given this"
    r"|i choose|i pick|i prefer|my|the|final|answer|verdict|choice|decision|judge?ment|preference|result|winner|scores?"
    r"|output|is|are|better|best|one|assistant|response|chatbot|rating|ranking|comparison|feedback)\b"
    r"|综上所述|综上|因此|所以|总之|最终|最后|我的|结论|结果|答案|选择|判断|裁决|评分|得分|分数|更好的?|较好的?|是|为|回答|助手|的"
    r"|したがって|よって|結論として|結論|最終的な|最終|判定|結果|答え|より良い|優れている|のは|です|は|の"
    r"|따라서|결론|최종|판정|결과|점수|더 나은|답변은?"
    r"|لذلك|إذن|الحكم|النهائي|النتيجة|هي|هو|इसलिए|अंतिम|निर्णय|परिणाम|है"
    r"|(?:por (?:lo )?tanto|veredicto|resultado|donc|résultat|daher|urteil|ergebnis|поэтому|итог|вердикт)\b"
    r"|\[the (?:begin|end) of [a-z ]{1,40}\]|[\s:,*_#\-–—()\[\]`\"'，、：；…])*+",
    re.IGNORECASE,
)
"""The words of a sentence that announces a verdict. The repetition is possessive: its time is linear."""
_LONGEST_ANNOUNCEMENT = 200


class _PlainForms(dict[int, str]):
    """The plain form of each character, cached: NFKC, and square brackets for the brackets of other scripts."""

    def __missing__(self, code: int) -> str:
        # One character at a time: NFKC of a whole text sorts runs of combining marks, in time quadratic in the run.
        form = self[code] = unicodedata.normalize("NFKC", chr(code))
        return form


_PLAIN_FORMS = _PlainForms(
    str.maketrans({"【": "[", "】": "]", "〖": "[", "〗": "]", "〔": "[", "〕": "]", "≻": ">", "≽": ">"})
)
_OPEN, _CLOSE = re.compile(r"<think(?:ing)?>", re.IGNORECASE), re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_BLOCK_QUOTE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_QUOTED = re.compile(r'"[^"\n]*"|“[^“”]*”|「[^「」]*」|『[^『』]*』|«[^«»]*»|`[^`\n]*`')  # fmt: skip
_LONE_MARK = re.compile(r"\W*(?:output\s*)?\w{1,2}\W*", re.IGNORECASE)
_REFUSED = re.compile(
    r"""
    ^\W*(?:
      (?:i['’]?m|i\ am)\ (?:very\ |so\ |really\ )?(?:sorry|unable|not\ able|afraid)
    | sorry\b | (?:my\ )?apologies\b | i\ apologi[sz]e\b
    | (?:unfortunately,?\ )?i\ (?:can(?:not|['’]t|\ not)|won['’]t|must\ decline|decline|refuse)\b
    | as\ an\ ai\b[^.]*\b(?:can(?:not|['’]t)|unable|not\ able)
    | (?:很|非常)?(?:抱歉|对不起|對不起) | (?:很遗憾[,，]?\s*)?我(?:无法|不能|不便|拒绝|無法)
    | 申し訳 | 죄송 | lo\ siento\b | je\ suis\ désolée?\b | es\ tut\ mir\ leid\b | mi\ dispiace\b
    | sinto\ muito\b | desculpe\b | извините\b | к\ сожалению\b | przepraszam\b | maaf\b | üzgünüm\b
    | آسف | عذر[اً] | متأسف | סליחה | אני\ מצטער | क्षमा\ करें | xin\ lỗi\b
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)


def normalize_text(text: str) -> str:
    """Return the text with full-width signs, letters and brackets in their plain forms (NFKC)."""
    return text.translate(_PLAIN_FORMS)


def without_thinking(text: str) -> str | None:
    """Return the text after the thinking; None where the thinking does not end.

    Only the first end counts, and no beginning is needed: some templates write it themselves. Thinking that quotes an
    end therefore leaves more text to be read, never less.
    """
    close = _CLOSE.search(text)
    if close is not None:
        return text[close.end() :]
    return None if _OPEN.search(text) else text


def without_quotations(text: str) -> str:
    """Return the text without code blocks, block quotes, and quotations that hold more than a mark alone.

    Quotations are the words of others. A mark alone in quotation marks is how some judges write their verdict.
    """
    return _QUOTED.sub(_lone_mark_only, without_quoted_blocks(text, in_whole=_lone_mark_only))


def without_quoted_blocks(text: str, in_whole: Callable[[re.Match[str]], str] = lambda block: block[0]) -> str:
    """Return the text without block quotes and code; ``in_whole`` says what becomes of code that is the whole text."""
    # A block of code may be the words of an answer, unless there is nothing else.
    block = _FENCE.match(text.strip())
    is_whole = block is not None and block.end() == len(text.strip())
    return _BLOCK_QUOTE.sub("", _FENCE.sub(in_whole if is_whole else " ", text))


def is_refusal(text: str) -> bool:
    """Return whether the reply begins by declining. Only for replies without a verdict."""
    return _REFUSED.match(text) is not None


def last_sentence(text: str) -> str:
    """Return what follows the last end of a sentence or line; at most one character more than an announcement has."""
    end = text[-_LONGEST_ANNOUNCEMENT - 1 :]
    return re.split(r"[.!?。！？]\s|[。！？\n]", end)[-1]


def announces(sentence: str) -> bool:
    """Return whether the sentence holds nothing but words that announce a verdict, in any of several languages."""
    return len(sentence) <= _LONGEST_ANNOUNCEMENT and _ANNOUNCEMENT.fullmatch(sentence) is not None


def _lone_mark_only(match: re.Match[str]) -> str:
    """Return the quotation where it is a mark alone that its sentence announces as the verdict; else a space."""
    text = match.group()
    before = match.string[max(0, match.start() - _LONGEST_ANNOUNCEMENT - 1) : match.start()]
    after = match.string[match.end() : match.end() + _LONGEST_ANNOUNCEMENT].partition("\n")[0]
    is_verdict = _LONE_MARK.fullmatch(text) and announces(last_sentence(before)) and announces(after.rstrip(".。!！"))
    return text if is_verdict else " "


class _Report(NamedTuple):
    """Words that report what an answer says: a speaker, then a verb of speaking before a sign of the ``ends``."""

    ends: re.Pattern[str]
    speaker: re.Pattern[str]
    verb: re.Pattern[str]

    def search(self, sentence: str) -> bool:
        """Return whether a speaker is followed by such a verb.

        Only the first speaker counts: what follows a later one follows the first one too.
        """
        parts = ((part, self.speaker.search(part)) for part in self.ends.split(sentence))
        return any(speaker and self.verb.search(part, speaker.end()) for part, speaker in parts)


_REPORTS = (
    _Report(
        re.compile(r"[.!?\[]"),
        re.compile(
            r"\b(?:answers?|responses?|assistant|outputs?|options?|text|author|it|one|which|that|[AB12])\b",
            re.IGNORECASE,
        ),
        re.compile(
            r"\b(?:says?|said|saying|tells?|told|telling|asks?|asked|asking|writes?|wrote|writing|claims?|claimed"
            r"|claiming|instructs?|instructed|demands?|demanded|requests?|requested|begs?|urges?|prints?|ends\s+with)\b",
            re.IGNORECASE,
        ),
    ),
    _Report(
        re.compile(r"[。！？\[]"),
        re.compile(r"回答|回复|答案|助手|选项|它|其"),
        re.compile(r"写|说|声称|宣称|要求|让|请求|指示|诱导"),
    ),
)


# In other languages the verb alone is enough: the order of speaker and verb differs.
_FOREIGN_REPORT = re.compile(
    r"\b(?:dice|escribe|pide|afirma|dit|écrit|demande|affirme|prétend|sagt|schreibt|behauptet|fordert|verlangt|scrive"
    r"|chiede|diz|escreve|pede|zegt|schrijft|vraagt|beweert|mówi|pisze|prosi|twierdzi|żąda|říká|píše|žádá|tvrdí|spune"
    r"|scrie|cere|afirmă|говорит|пишет|просит|утверждает|требует|написано|каже|просить|стверджує|вимагає|λέει|γράφει"
    r"|ζητά|ισχυρίζεται|diyor|yazıyor|istiyor|iddia|mengatakan|menulis|meminta|mengklaim|menyuruh|nói|viết|yêu cầu"
    r"|tuyên bố)\b"
    r"|と言|と書|書い|述べ|主張|要求|指示|求め|頼|말하|말한|쓰여|적혀|요청|요구|주장|라고|يقول|تقول|يكتب|كتب|يطلب|تطلب|يدعي|يزعم|تزعم"
    r"|نوشته|می‌گوید|می‌خواهد|ادعا|אומר|כותב|כתוב|מבקש|טוען|דורש|कहता|कहती|लिखता|लिखा|लिखती|माँग|मांग|दावा|कहा",
    re.IGNORECASE,
)


def negates(sentence: str) -> bool:
    """Return whether the sentence has a word of negation, in any of several languages."""
    return _NEGATION.search(sentence) is not None


def reports(sentence: str) -> bool:
    """Return whether the sentence reports what an answer says, in any of several languages."""
    return any(report.search(sentence) for report in _REPORTS) or _FOREIGN_REPORT.search(sentence) is not None
