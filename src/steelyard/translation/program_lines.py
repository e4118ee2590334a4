"""Lines of programs outside fenced code: what a translator must not change, and no check of prose may read.

One line tells by itself: a call, an assignment, a keyword with its punctuation. A line in a paragraph is code where it
tells so. Indented lines are code in Markdown, but models and people indent prose as well: such a block is read line by
line where a line of it is prose.
"""

import re
from collections.abc import Sequence

_KEYWORDS = "(?!(?:in|for|not|and|or|is|if|else|while|return) )"
_NO_PROSE = rf"(?!.*\b{_KEYWORDS}[a-z]{{2,}} {_KEYWORDS}[a-z]{{2,}} {_KEYWORDS}[a-z]{{2,}})"
_NO_WORDS = r"(?!\s*(?!(?:new|not|await|yield|typeof) )[A-Za-z]+(?: [A-Za-z]+)+[.;]?\s*$)"
"""An assigned value that is not words alone, as in ``English = of England``."""
_QUOTED = r"\"[^\"]*+\"|'[^']*+'|[^()]"
_IN_BRACKETS = rf"(?:{_QUOTED}|\((?:{_QUOTED}|\((?:{_QUOTED}|\((?:{_QUOTED})*+\))*+\))*+\))*+"
"""The content of a pair of brackets, with three more levels of pairs: a call ends with the bracket that closes it."""
_COMMANDS = (
    "(?:sudo|apt(?:-get)?|brew|conda|pip3?|npm|npx|yarn|pnpm|git|docker|kubectl|cargo|curl|wget|ssh|scp|rsync|cd|ls|mkdir"
    "|rmdir|rm|cp|mv|chmod|chown|cat|grep|nano|vim|systemctl|export|source|python3?|node|make|echo)"
)
_STATEMENTS = {
    "session": (
        r">>>(?! *(?!(?:import|from|def|for|while|if|not|print|del|class|with|assert|lambda)\b)[A-Za-z]+ [A-Za-z<]+)"
    ),
    "definition": r"(?:async )?def \w+\s*\(|class \w+(?:\(.*\))?\s*:\s*(?:#.*|pass\s*|\.\.\.\s*)?$",
    "import": (
        r"import [\w.]+(?: as \w+)?\s*$"
        r"|from [a-z_.][\w.]* import (?:[(*]|\w+(?: as \w+)?(?:, ?\w+(?: as \w+)?)*\s*(?:#.*)?$)"
    ),
    "condition": (
        rf"(?:if|elif|while)\b{_NO_PROSE}(?=.*(?:[=<>\[\]{{}}_]|\w\(|\w\.\w)).*:\s*"
        r"(?:(?:continue|break|pass|return\b.*|[\w.]+ ?[-+*/]?= .*)?|#.*)$"
    ),
    "loop": r"while (?:True|1):|for [\w, ()*]+ in .*(?:[(\[{_]|\w\.\w).*:\s*(?:#.*)?$",
    "block": (r"with [\w.]+\(.*:\s*(?:#.*)?$|(?:else|try|finally|except(?: [\w.(), ]+?)?(?: as \w+)?)\s*:\s*(?:#.*)?$"),
    "return": (
        rf"return(?:\s(?![a-z]+ \(){_NO_PROSE}(?=.*[\[\](){{}}=+*/%_\d'\"]).*|;|\s*$)"
        r"|return (?:\w+;|None|True|False|null|nil)\s*$"
    ),
    "failure": r"raise \w+\(|assert .*(?:==|\w\()",
    "closing brackets": r"[})\];,]+\s*$",
    "entry": rf"['\"][^'\"]{{0,80}}['\"]\s*:{_NO_PROSE}\s*.*,\s*$",
    "decorator": r"@\w[\w.]*\(",
    "preprocessor": r"#(?:include|define)\b",
    "function": r"(?:func|fn|function)\s+[\w.$*]+[<(\[]|function\s*\(.*\{|func \(\w+ \*?\w+\) \w",
    "variable": rf"(?:const|let|var)\s{_NO_PROSE}(?:[^=;]*=(?!\s*(?:all|the)\b)|\w+;).*",
    "member": r"(?:public|private|protected|static)\s(?:[\w<>\[\],.? ]*\w\(.*|.*[{;}]\s*)$",
    "call": (
        rf"(?:[\w.]+\(){{1,3}}{_IN_BRACKETS}\)(?:[\w.]*\({_IN_BRACKETS}\)|\[[^\[\]]*+\]|\.\w+)*+[)\]}}]*+\s*"
        r"(?:[;{]?|(?:#|//|[=!<>]=|=>|->|\u279e|=).*)$|[\w.]+\(.*[=-]> ?\{\s*$"
    ),
    "traceback": (
        r"Traceback \(most recent call last\):|\s+File \"[^\"]*\", line \d|\s+at [\w.$<>/]+ ?\(.*\)\s*$"
        r"|[A-Z]\w+(?:Error|Exception): "
    ),
    "module": r"(?:using|export|use|package|typedef) [^.!?]*;\s*$",
    "SQL": (
        r"SELECT\s+(?:DISTINCT\s+)?[^\s,]+(?: AS \w+)?(?:\s*,\s*[^\s,]+(?: AS \w+)?)*\s+FROM\s+\S"
        r"|(?:INSERT INTO|(?:CREATE|ALTER|DROP) TABLE)\s+[\w.]+(?:\s|;|$)|UPDATE\s+[\w.]+\s+SET\s"
        r"|DELETE FROM [\w.]+\s*(?:;|WHERE|$)"
    ),
    "shell": rf"\$ (?:{_COMMANDS}\b|\.?/)",
    "assignment, statement or opening bracket": (
        rf"{_NO_PROSE}(?=[\x20-\x7e\t]*$)(?:[\w.\[\]'\"]+(?:, ?[\w.\[\]'\"]+)*\s*[-+*/|&%]?={_NO_WORDS}[^=].*"
        r"|(?=.*(?:[={}\[\]]|\w!?\(|if \(|\+\+|--|<<)).*;\s*$|(?:(?=.*[\w)=]).*)?\{\s*$)"
    ),
}
"""Lines that are code by themselves, of many languages of programs."""
_CODE_LINE = re.compile(rf"\s*(?:{'|'.join(_STATEMENTS.values())})")
_WEAK_CODE_LINE = re.compile(
    r"\s*(?:@\w+\s*$|[A-Z][A-Za-z.]*\([A-Za-z][A-Za-z ,.]*\)\s*$|[a-z]+\((?:s|es|n|in|e)\)\s*$"
    r"|(?=.*[A-Za-z]{3})[A-Za-z]+(?:, ?[A-Za-z]+)*\s*=(?!=)(?!.*(?:\w\(|\w\.[A-Za-z]))[A-Za-z0-9 +\-*/().,%$€£^]+$)"
)
"""A line that may be prose: ``Profit = Revenue - Costs``, ``Horse(Tamed)``. It is code beside a line that is."""
_INDENTED_CODE_LINE = re.compile(
    r"(?:\s{4,}|\t\s*)(?:#|//).*$|\s+(?=[\x20-\x7e]*$)(?:for \w+(?:, ?\w+)* in .*:"
    r"|(?:if|elif|while)(?: [\w.]+){1,7}\s*:|return(?: not)? \w+|with .*:"
    r"|break|continue|pass|raise .*|yield .*|['\"](?:[^'\"]{0,80}['\"],|[^'\"\s]{0,80}['\"]))\s*$"
)
"""Lines that are those of a program where they are indented: ``for x in y:``, ``return x``."""
_COMMENT = re.compile(r"\s*(?:#(?!\w)|//|--\s|/\*)")
_SHELL = re.compile(rf"\s*(?:[$%] )?{_COMMANDS}(?: [!-~]+)*\s*$")
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
_BEGINNING = re.compile(r"\s*(?:/\*|//|(?:import|package|func|use|using)\b.*[;({]\s*$)")
_ENDS = ("{", "}", "*/", *_STRING_ENDS)
_FEWEST_LINES = 2
_LONGEST_PROGRAM = 50_000


def is_code_line(line: str) -> bool:
    """Return whether a line is one of a program; longer lines than programs have are not."""
    if len(line) > _LONGEST_CODE_LINE:
        return False
    return _CODE_LINE.match(line) is not None or _INDENTED_CODE_LINE.match(line) is not None


def code_lines(lines: Sequence[str]) -> list[bool]:
    """Return for each line whether it is one of a program; the lines after a call in a Python session are its result.

    A line that defines a function in words is prose, and so is one that could be words where no line beside it is code.
    """
    result: list[bool] = []
    is_session = False
    for line in lines:
        body = line.strip()
        begins = body.startswith(">>>") and is_code_line(line)
        is_session = begins or (is_session and bool(body) and body not in _STRING_ENDS)
        is_code = bool(body) and (is_session or (is_code_line(line) and not _WEAK_CODE_LINE.match(line)))
        result.append(is_code and (is_comment(line) or not _PROSE_WITHIN.search(_QUOTED_OR_COMMENT.sub("", line))))
    for order in (range(1, len(lines)), range(len(lines) - 2, -1, -1)):
        for number in order:
            result[number] |= result[number - order.step] and _WEAK_CODE_LINE.match(lines[number]) is not None
    return result


def program_lines(lines: Sequence[str]) -> list[bool]:
    """Return which lines of a text are a program's: those that tell, and those without prose between two of them.

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


def is_program(text: str) -> bool:
    """Return whether a text as a whole is a program without a fence around it, as the prompts of HumanEval are.

    It begins and ends as a program does: what people write about code begins or ends with words.
    """
    lines = text.split("\n")
    if "```" in text or len(text) > _LONGEST_PROGRAM:
        return False
    written = [(line, is_code) for line, is_code in zip(lines, code_lines(lines), strict=True) if line.strip()]
    if len(written) < _FEWEST_LINES:
        return False
    (first, begins), (last, ends) = written[0], written[-1]
    is_body = first[:2].isspace() and 2 * sum(is_code for _, is_code in written) >= len(written)
    return (begins or is_body or _BEGINNING.match(first) is not None) and (ends or last.rstrip().endswith(_ENDS))


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
    if is_begun and (num_words >= _FEWEST_WORDS or _WEAK_CODE_LINE.match(line)):
        return True
    is_long = num_words >= _FEWEST_WORDS or (num_words > 1 and _LABEL.fullmatch(line) is not None)
    return (is_long or is_begun) and not _CODE_SIGN.search(line)
