"""Lines of programs outside fenced code: what a translator must not change, and no check of prose may read.

One line tells by itself: a call, an assignment, a keyword with its punctuation. A line in a paragraph is code where it
tells so. Indented lines are code in Markdown, but models and people indent prose as well: such a block is read line by
line where a line of it is prose.
"""

import re
from collections.abc import Iterator, Sequence

_KEYWORDS = "(?!(?:in|for|not|and|or|is|if|else|while|return) )"
_NO_PROSE = rf"(?!.*\b{_KEYWORDS}[a-z]{{2,}} {_KEYWORDS}[a-z]{{2,}} {_KEYWORDS}[a-z]{{2,}})"
_NO_WORDS = r"(?!\s*(?!(?:new|not|await|yield|typeof) )[A-Za-z]+(?: [A-Za-z]+)+[.;]?\s*$)"
"""What is assigned is not words alone, as in ``English = of England``."""
_QUOTED = r"\"[^\"]*+\"|'[^']*+'|[^()]"
_IN_BRACKETS = rf"(?:{_QUOTED}|\((?:{_QUOTED}|\((?:{_QUOTED}|\((?:{_QUOTED})*+\))*+\))*+\))*+"
"""What a pair of brackets encloses, with three more levels of pairs: a call ends with the bracket that closes it."""
_CODE_LINE = re.compile(
    r"\s*(?:>>>|\.\.\. |(?:async )?def \w+\s*\(|class \w+\s*[(:]|import [\w.]+(?: as \w+)?\s*$|from [\w.]+ import "
    rf"|(?:if|elif|for|while|with|except)\b{_NO_PROSE}(?=.*[\[\](){{}}=<>_]).*:\s*"
    r"(?:(?:continue|break|pass|return\b.*|[\w.]+ ?[-+*/]?= .*)?|#.*)$|(?:else|try|finally)\s*:\s*(?:#.*)?$"
    rf"|return(?:\s{_NO_PROSE}(?=.*[\[\](){{}}=+*/%_\d'\"]).*|;|\s*$)|[}})\];,]+\s*$|['\"][^'\"]{{0,80}}['\"]\s*:\s*.*,\s*$"
    r"|@\w+\s*(?:\(.*)?$|#include|(?:func|fn|function)\s+[\w.$*]*\s*[<(\[]"
    rf"|(?:const|let|var)\s{_NO_PROSE}(?:[^=;]*=|\w+;).*"
    r"|(?:public|private|protected|static)\s(?:[\w<>\[\],.? ]*\w\(.*|.*[{;}]\s*)$"
    rf"|(?:[\w.]+\(){{1,3}}{_IN_BRACKETS}\)(?:[\w.]*\({_IN_BRACKETS}\)|\[[^\[\]]*+\]|\.\w+)*+[)\]}}]*+\s*"
    r"(?:[;{]?|(?:#|//|[=!<>]=|=>|->|\u279e|=).*)$|[\w.]+\(.*[=-]> ?\{\s*$"
    r"|Traceback \(most recent call last\):|\s+File \"[^\"]*\", line \d|\s+at [\w.$<>/]+ ?\(.*\)\s*$"
    r"|[A-Z]\w+(?:Error|Exception): "
    r"|SELECT\s.{1,300}\sFROM\s|(?:INSERT INTO|UPDATE|DELETE FROM|(?:CREATE|ALTER|DROP) TABLE)\s+[\w.]+(?:\s|;|$)"
    r"|\$ [a-z./~][!-~ ]*$"
    rf"|{_NO_PROSE}(?=[\x20-\x7e\t]*$)"
    rf"(?:[\w.\[\]'\"]+(?:, ?[\w.\[\]'\"]+)*\s*[-+*/|&%]?={_NO_WORDS}[^=].*|(?=.*[=(){{}}\[\]]).*[;{{]\s*$))"
)
_INDENTED_CODE_LINE = re.compile(
    r"(?:\s{4,}|\t\s*)(?:#|//).*$|\s+(?=[\x20-\x7e]*$)(?:for \w+(?:, ?\w+)* in .*:"
    r"|(?:if|elif|while)(?: [\w.]+){1,7}\s*:|return(?: not)? \w+|with .*:"
    r"|break|continue|pass|raise .*|yield .*|['\"](?:[^'\"]{0,80}['\"],|[^'\"\s]{0,80}['\"]))\s*$"
)
"""Lines that are those of a program where they are indented: ``for x in y:``, ``return x``."""
_COMMENT = re.compile(r"\s*(?:#(?!\w)|//|--\s|/\*)")
_SHELL = re.compile(
    r"\s*(?:[$%] )?(?:sudo|apt(?:-get)?|brew|conda|pip3?|npm|npx|yarn|pnpm|git|docker|kubectl|cargo|curl|wget|ssh|scp"
    r"|rsync|cd|ls|mkdir|rmdir|rm|cp|mv|chmod|chown|nano|vim|systemctl|export|source|python3?|node|make|echo)"
    r"(?: [!-~]+)*\s*$"
)
"""A command of a shell, in an indented block alone: ``make`` and ``export`` are words, too."""
_QUOTED_OR_COMMENT = re.compile(r"\"[^\"]*+\"|'[^']*+'|(?:\s#|//|\s--\s).*")
_PROSE_WITHIN = re.compile(r"[^\W\d_\x00-\x7f]|\b[a-z]{2,} (?:[a-z] )?[a-z]{2,}\b.*(?<!\.)\.\s*\Z")
"""Letters beside ASCII, or words up to a full stop, outside literals and comments: ``f(n) = n, if n is even.``"""
_LABEL = re.compile(r"[^={};\"']*[^\W\d_] ?[:：]\s*")
_WORD = re.compile(r"[^\W\d_]+(?:[’'\-][^\W\d_]+)*")
_SENTENCE = re.compile(r"[\s\-*+•·>\"'“«„(\[_#\d.)]*([^\W\d_])")
_CODE_SIGN = re.compile(r"[={};]|\w\(|\w\.\w+\(|::|->|\S {3,}\S")
_FEWEST_WORDS = 5
_LONGEST_CODE_LINE = 500
_STRING_ENDS = ('"""', "'''")


def is_code_line(line: str) -> bool:
    """Return whether a line is one of a program; longer lines than programs have are not."""
    if len(line) > _LONGEST_CODE_LINE:
        return False
    return _CODE_LINE.match(line) is not None or _INDENTED_CODE_LINE.match(line) is not None


def code_lines(lines: Sequence[str]) -> Iterator[bool]:
    """Yield for each line whether it is one of a program; the lines after a call in a Python session are its result.

    A line that defines a function in words is prose.
    """
    is_session = False
    for line in lines:
        body = line.strip()
        is_session = body.startswith(">>>") or (is_session and bool(body) and body not in _STRING_ENDS)
        is_code = bool(body) and (is_session or is_code_line(line))
        yield is_code and (is_comment(line) or not _PROSE_WITHIN.search(_QUOTED_OR_COMMENT.sub("", line)))


def program_lines(lines: Sequence[str]) -> list[bool]:
    """Return which lines of a text are a program's: those that tell, and those between two of them that are no prose.

    Comments are prose.
    """
    result = [is_code and not is_comment(line) for line, is_code in zip(lines, code_lines(lines), strict=True)]
    last: int | None = None
    for number, (line, is_code) in enumerate(zip(lines, result, strict=True)):
        if is_code:
            if last is not None:
                result[last + 1 : number] = [True] * (number - last - 1)
            last = number
        elif not line.strip() or is_comment(line) or _is_prose(line):
            last = None
    return result


def is_comment(line: str) -> bool:
    """Return whether a line is a comment of a program alone, which is prose."""
    return _COMMENT.match(line) is not None


def indented_code(lines: Sequence[str]) -> list[bool]:
    """Return which lines of an indented block are code: all, or those of a program where another line is prose.

    Differs from: CommonMark, where all of them are code. A line that is neither is what the line before it is.
    """
    code = [
        (is_code and not is_comment(line)) or _SHELL.match(line) is not None
        for line, is_code in zip(lines, code_lines(lines), strict=True)
    ]
    prose = [not is_code and _is_prose(line) for line, is_code in zip(lines, code, strict=True)]
    if not any(prose):
        return [True] * len(lines)
    result: list[bool] = []
    previous = False
    for line, is_code, is_prose in zip(lines, code, prose, strict=True):
        if is_code or is_prose or is_comment(line):
            previous = is_code
        result.append(previous)
    return result


def _is_prose(line: str) -> bool:
    """Return whether a line is prose: it begins with a capital, or in a script without any, or has five words.

    A label of two words is prose as well.
    """
    if is_comment(line):
        return False
    num_words = len(_WORD.findall(line))
    first = _SENTENCE.match(line)
    is_begun = first is not None and first[1] == first[1].upper()
    if num_words >= _FEWEST_WORDS and is_begun:
        return True
    is_long = num_words >= _FEWEST_WORDS or (num_words > 1 and _LABEL.fullmatch(line) is not None)
    return (is_long or is_begun) and not _CODE_SIGN.search(line)
