"""A reply's own words: its text without thinking and quotations, and what a sentence does with a verdict.

A sentence may announce a verdict, negate it, or report it of an answer; `verdict_words` has the words of each language.
A negation spoils a verdict that it reaches: one of its own clause, or of another clause where it negates nothing but
the announcement itself ("not, in my view, [[A]]").

Every function takes time linear in the length of the text for any content: a reply may be written to stall the run.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from steelyard.core.language_words import SIGNS, fold
from steelyard.judging.verdict_words import (
    announcement,
    break_pattern,
    matching,
    negation_patterns,
    reporting,
    words_by_language,
)

LONGEST_ANNOUNCEMENT = 200
SENTENCE_MARKS = "。！？；।॥؟۔։።"
"""The marks that end a sentence with or without a space after them, in the scripts that have their own."""
VERDICT = "\ue000"
"""The character that stands for the verdict in a sentence (private use)."""
_LONGEST_WORD = 64
_CLEARLY = 3
"""The typical words by which a text is another language's, so that a word of negation in it is a foreign one."""
_WORD = re.compile(rf"[{SIGNS}]+(?:'[{SIGNS}]+)*")
_CLAUSE_END = re.compile(r"[,;:.!?、。،؛؟।()\u2013\u2014]+")
_LABEL = re.compile(r"(?<![A-Za-z0-9])([A-D]|[1-4])(?![A-Za-z0-9])", re.ASCII)
_FOLDED_LABEL = re.compile(_LABEL.pattern, re.ASCII | re.IGNORECASE)


class _PlainForms(dict[int, str]):
    """The plain form of each character, cached: NFKC, and the brackets and digits of other scripts as [] and 0 to 9."""

    def __missing__(self, code: int) -> str:
        # One character at a time: NFKC of a whole text sorts runs of combining marks, in time quadratic in the run.
        sign = unicodedata.normalize("NFKC", chr(code))
        form = self[code] = str(unicodedata.decimal(sign)) if sign.isdecimal() and len(sign) == 1 else sign
        return form


_PLAIN_FORMS = _PlainForms(
    str.maketrans({"【": "[", "】": "]", "〖": "[", "〗": "]", "〔": "[", "〕": "]", "≻": ">", "≽": ">", "⁄": "/"})
    # The characters that stand for a verdict while a reply is read.
    | dict.fromkeys(range(0xE000, 0xE006), " ")
    # Signs that nobody sees: soft hyphens, breaks without a width, and the directions of text.
    | dict.fromkeys(map(ord, "\u00ad\u061c\u200b\u200e\u200f\u2060\ufeff"), "")
    | dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "")
)
# The tags of thinking of Qwen and DeepSeek, Seed, Kimi, Magistral, Sky-T1, Command A, and the channels of gpt-oss.
_TAG = r"(?:think(?:ing)?|thought|reasoning|seed:think)"
_OPEN = re.compile(
    rf"<{_TAG}>|◁think▷|\[think\]|<\|(?:begin_of_thought|start_thinking)\|>|<\|channel\|>analysis", re.IGNORECASE
)
_CLOSE = re.compile(
    rf"</{_TAG}>|◁/think▷|\[/think\]|<\|end_(?:of_thought|thinking)\|>|<\|channel\|>final(?:<\|message\|>)?",
    re.IGNORECASE,
)
_PAIRED_MARKS = frozenset(("``", '""', "''", "“”", "‘’", "„“", "«»", "「」", "『』"))
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_BLOCK_QUOTE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
# English, German, Polish and Swedish, Chinese, Hebrew, Japanese, French and Danish quotation marks, and single ones.
_QUOTED = re.compile(
    r"""\"[^"\n]*"|“[^“”]*”|„[^„“”\n]*[“”]|《[^《》]*》|”[^“”„\n]*”|״[^״\n]*״|「[^「」]*」|『[^『』]*』|«[^«»]*»|»[^«»\n]*«"""
    r"""|`[^`\n]*`|‘[^‘’\n]*’|‚[^‚‘’\n]*[‘’]|(?<!\w)'[^'\n]*'(?!\w)"""
)
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
    """Return the text with full-width signs, letters and brackets in their plain forms (NFKC).

    Double brackets that are escaped as in Markdown are plain ones.
    """
    return text.translate(_PLAIN_FORMS).replace(r"\[\[", "[[").replace(r"\]\]", "]]")


def without_thinking(text: str) -> str | None:
    """Return the text after the thinking; None where the thinking does not end.

    Only the first end counts, and no beginning is needed: some templates write it themselves. Thinking that quotes an
    end therefore leaves more text to be read, never less. Without a beginning, an end directly between quotation marks
    is that of a response.
    """
    opening = _OPEN.search(text)
    close = next((end for end in _CLOSE.finditer(text) if opening is not None or not _is_in_marks(end)), None)
    if close is not None:
        return text[close.end() :]
    return text if opening is None else None


def _is_in_marks(match: re.Match[str]) -> bool:
    """Return whether quotation marks stand directly before and behind a match."""
    text = match.string
    return f"{text[max(0, match.start() - 1) : match.start()]}{text[match.end() : match.end() + 1]}" in _PAIRED_MARKS


def after_thinking(text: str) -> str:
    """Return the answer of a text that begins with thinking, or ends it first; empty where the thinking does not end.

    A text that has such tags further on writes about them, and stays as it is.
    """
    opening, close = _OPEN.search(text), _CLOSE.search(text)
    begins = opening is not None and not text[: opening.start()].strip()
    if close is not None and (begins or opening is None or close.start() < opening.start()):
        return text[close.end() :].lstrip()
    return "" if begins else text


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
    end = text[-LONGEST_ANNOUNCEMENT - 1 :]
    return re.split(rf"[.!?]\s|[{SENTENCE_MARKS}\n]", end)[-1]


def _lone_mark_only(match: re.Match[str]) -> str:
    """Return the quotation where it is a mark alone that its sentence announces as the verdict; else a space."""
    text = match.group()
    before = match.string[max(0, match.start() - LONGEST_ANNOUNCEMENT - 1) : match.start()]
    after = match.string[match.end() : match.end() + LONGEST_ANNOUNCEMENT].partition("\n")[0]
    is_verdict = _LONE_MARK.fullmatch(text) and announces(last_sentence(before)) and announces(after.rstrip(".。!！"))
    return text if is_verdict else " "


def announces(sentence: str) -> bool:
    """Return whether the sentence holds nothing but words that announce a verdict."""
    return len(sentence) <= LONGEST_ANNOUNCEMENT and announcement().fullmatch(fold(sentence)) is not None


def negates(sentence: str) -> bool:
    """Return whether the sentence has a word of negation."""
    folded = _without_idioms(fold(sentence))
    return _without_negations(folded, _languages(folded)) != folded


def negates_verdict(sentence: str, label: str | None = None) -> bool:
    """Return whether a negation reaches the verdict, which `VERDICT` stands for in the sentence.

    It does from the verdict's clause, and from one that a word such as "that" joins to it. From another clause it does
    where without it nothing is left but an announcement or two words: "I would not choose: [[A]]". A clause that names
    an answer other than ``label`` speaks of that one, and none reaches over a conjunction such as "but".
    """
    if not negates(sentence):
        return False
    text = _without_idioms(fold(sentence, is_cased=True))
    languages = _languages(text.casefold())
    clauses = _clauses(text)
    marked = [place for place, clause in enumerate(clauses) if VERDICT in clause]
    first, last = marked[0], marked[-1]
    joined = [matching("joins").match(clause.strip()) is not None for clause in clauses]
    opened = [break_pattern().match(clause.strip()) is not None for clause in clauses]
    for place, clause in enumerate(clauses):
        folded = clause.casefold()
        if _without_negations(folded, languages) == folded:
            continue
        if place in marked or (place == first - 1 and joined[first]) or (place == last + 1 and joined[place]):
            return True
        between = opened[place + 1 : first + 1] if place < first else opened[last + 1 : place + 1]
        if any(between) or _names_another(clause, label):
            continue
        if (place < first and joined[first]) or _is_announcement(_without_negations(folded, languages)):
            return True
    return False


def reports_verdict(sentence: str) -> bool:
    """Return whether the sentence reports the verdict, which `VERDICT` stands for, of an answer or of other people.

    A report reaches over the clauses of a sentence, unless it says more after its verb and the verdict has a clause of
    its own that announces it: "it explains what was asked for, so my verdict is [[A]]". Behind a verdict, an answer
    that ignores the question is a reason.
    """
    before, mark, behind = sentence.partition(VERDICT)
    reason = matching("declines").sub(" ", fold(behind)) if _LABEL.search(behind) else fold(behind)
    text = matching("unreported").sub(" ", f"{fold(before)}{mark}{reason}")
    clauses = _clauses(text)
    mark = next(place for place, clause in enumerate(clauses) if VERDICT in clause)
    lead = break_pattern().sub("", clauses[mark].replace(VERDICT, " ").strip())
    is_announced = bool(lead.strip()) and announces(lead)
    reports = [
        (place, clause[end:]) for place, clause in enumerate(clauses) if (end := _report_end(clause)) is not None
    ]
    if any(not (place < mark and is_announced and len(rest.strip()) > 2) for place, rest in reports):
        return True
    # What other people would choose stands before the verdict; behind it they may agree or not.
    *earlier, clause = _clauses(fold(sentence).partition(VERDICT)[0] + VERDICT)
    if matching("others").search(clause) is not None:
        return True
    opening = clause.replace(VERDICT, " ").strip()
    is_own = break_pattern().match(clause.strip()) is not None or (bool(opening) and announces(opening))
    if is_own and matching("joins").match(opening) is None:
        return False
    return any(matching("others").search(part) is not None for part in earlier)


def _without_idioms(text: str) -> str:
    return matching("idioms").sub(" ", text)


def _languages(folded: str) -> Counter[str]:
    """Return the number of words of the text that are typical of each language."""
    negations, common = words_by_language()
    counts = Counter[str]()
    for match in _WORD.finditer(folded):
        counts.update(negations.get(match[0], set()) | common.get(match[0], set()))
    return counts


def _without_negations(folded: str, languages: Counter[str]) -> str:
    """Return the text without words of negation; one that is an ordinary word of the text's language stays."""
    ending, phrase, inside = negation_patterns()
    negations, common = words_by_language()

    strongest = max(languages.values(), default=0)

    def replacement(match: re.Match[str]) -> str:
        word = match[0]
        if len(word) > _LONGEST_WORD:
            return word
        ours, theirs = negations.get(word, set[str]()), common.get(word, set[str]())
        if not ours:
            return " " if ending.fullmatch(word) and not theirs else word
        most = max(languages[language] for language in ours)
        rival = max((languages[language] for language in theirs - ours), default=0)
        return word if rival > most or strongest >= most + _CLEARLY else " "

    text = inside.sub(" ", f" {folded} ")
    text = _WORD.sub(replacement, phrase.sub(" ", text))
    return folded if text == f" {folded} " else text


def _names_another(clause: str, label: str | None) -> bool:
    """Return whether the clause names an answer other than that of the label."""
    if label is None:
        return False
    return not {label, str(ord(label) - ord("A") + 1)}.issuperset(_LABEL.findall(clause))


def _is_announcement(folded: str) -> bool:
    """Return whether a clause whose negation is removed says nothing but a verdict: it announces, or has two words."""
    rest = _FOLDED_LABEL.sub(" ", folded)
    # Scripts that are written without spaces between words.
    is_unspaced = re.search("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]", rest) is not None
    most = 3 if is_unspaced else _LONGEST_WORD
    return announces(rest) or (len(rest.split()) <= 2 and len(rest.strip()) <= most)


def _clauses(text: str) -> list[str]:
    """Return the clauses: the parts between signs and conjunctions."""
    parts = (part for clause in _CLAUSE_END.split(text) for part in _at_conjunctions(clause))
    return [part for part in parts if part.strip()]


def _at_conjunctions(clause: str) -> list[str]:
    """Return the clause cut before the conjunctions that begin a clause and after those that end one."""
    begins = [match.start() for match in matching("breaks").finditer(clause)]
    ends = [match.end() for match in matching("ends").finditer(clause)]
    cuts = [0, *sorted({*begins, *ends}), len(clause)]
    return [clause[start:end] for start, end in pairwise(cuts)]


def _report_end(folded: str) -> int | None:
    """Return where the last report of the text ends: a verb of speaking, after a speaker where its language asks it.

    A clause may begin with the verb: "says the second answer".
    """
    verbs, speakers = reporting()
    ends = [match.end() for match in verbs.finditer(folded)]
    for speaker, verb in speakers:
        first = speaker.search(folded)
        if first is not None:
            ends += [match.end() for match in verb.finditer(folded, first.end())]
            opening = verb.match(folded, len(folded) - len(folded.lstrip()))
            ends += [first.end()] if opening is not None and opening.end() < first.end() else []
    return max(ends, default=None)
