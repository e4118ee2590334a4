"""Pieces that must not be translated within a paragraph: code, formulas, tags, links, addresses, names of programs.

One pattern finds where a piece may begin; each kind then ends by its own grammar. Every repetition is possessive and
stops at a character that begins the next match, so that the time is linear in the length of any text.

Numbers in prose stay text, with or without units: translators write ``3,5 km`` where English has ``3.5 km``, and
checks after the translation compare values. Numbers of a technical form are pieces: versions, ``0x1F``, ``16px``.
Words within formulas, titles of links and attributes of tags stay with their piece, which several marks could break.
Ambiguous text stays text where it is probably prose (``item(s)``, ``$5 and $6``), and is a piece where a translation
would break it (``np.array``, names with inner capitals).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from steelyard.translation.blocks import FORMULA_ENVIRONMENTS, Closings

_CODE_ELEMENTS = ("code", "kbd", "math", "pre", "samp", "script", "style", "svg", "textarea", "var")
"""Elements of HTML whose content is not prose."""
_NOUNS = (
    "ADDRESS|AGE|AMOUNT|BOS|CITY|CLS|COMPANY|COUNTRY|DATE|EMAIL|EOS|ID|INSERT|LINK|LOCATION|MASK|MONTH|NAME|NUMBER|PAD|"
    "PERSON|PHONE|PLACEHOLDER|PRODUCT|REDACTED|SEP|STATE|TIME|TITLE|TOPIC|UNK|URL|YEAR"
)
"""Single words in brackets that are placeholders; others, such as NOTE, may be prose."""
_NAME_EXTENSION = (
    "(?:" + "|".join(rf"(?<=\.[a-z]{f'[a-z0-9]{{{length}}}' if length else ''})" for length in range(5)) + ")"
)
"""The text before it is a full stop and an extension of a file, of up to five characters."""
_LETTERS = r"\u00c0-\u024f\u0370-\u052f\u1e00-\u1eff"
"""Letters of alphabets with spaces between words beside ASCII: Latin with accents, Greek and Cyrillic."""
_BOOLEAN_ATTRIBUTES = (
    "async|autofocus|autoplay|checked|contenteditable|controls|default|defer|disabled|download|hidden|inert|ismap|itemscope|"
    "loop|multiple|muted|nomodule|novalidate|open|playsinline|readonly|required|reversed|selected"
)
"""Attributes without a value; other words in angle brackets are prose, as in ``a<b and b>c``."""
_FOLDER = r"[^\s\\\"<>|*?:\x7f-\U0010ffff]"
"""A character of the name of a folder in Windows."""
_DRIVE_PATH = rf"(?<!\w)[A-Za-z]:\\(?:{_FOLDER}++(?: (?:(?=[A-Z(\d]){_FOLDER}++|and))*+\\)*+{_FOLDER}*+"
_NETWORK_PATH = r"(?<![\\\w])\\\\[A-Za-z0-9][\w.\-]*+\\[^\s\"<>|*?:]++"
_FOLDERS = r"(?:/[\w.@%+\-]++)"
_ROOTED_PATH = (
    rf"(?<![\w./~)>*:\]}}\-])(?:(?:~|\.\.?+){_FOLDERS}++/?+"
    rf"|(?<!(?u:\w))/[A-Za-z_.@][\w.@%+\-]*+{_FOLDERS}*+/?+|(?=/[A-Za-z_.@]){_FOLDERS}{{2,}}+/?+)"
)
_FILE_PATH = rf"(?<![\w./\-])[\w\-]++(?:\.[\w\-]++)*+(?:/[\w\-]++(?:\.[\w\-]++)*+)++{_NAME_EXTENSION}"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_VERSION = r"(?:v?\d++(?:\.\d++){2,}+|v\d++\.\d++)(?:-(?:alpha|beta|rc|dev|pre)[.\-]?\d*+)?+(?:/\d{1,2})?"
_TIMESTAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d++)?+)?+(?:Z|[+\-]\d\d:\d\d)?+"
_HARDWARE_ADDRESS = r"(?:[0-9A-Fa-f]{1,4}::?+){3,7}+[0-9A-Fa-f]{1,4}"
_EXPONENTIAL = r"\d++(?:\.\d++)?+[eE][+\-]?\d++"
_HASH = r"(?=\d*+[a-f])(?=[a-f]*+\d)[0-9a-f]{7,128}+"
_COLOUR = r"(?<![\w&])#(?:[0-9A-Fa-f]{6}|[0-9A-Fa-f]{3})(?!\w)"
_MEASURE = r"(?<![\w.])\d++(?:\.\d++)?+(?:px|em|rem|vh|vw|dpi|fps|ms|ns|[kKMGTP]i?[bB]|[kMG]?Hz)(?!\w)"
_TYPES = r"(?:[A-Z]\w*+|int|str|string|float|double|bool|char|[iuf](?:8|16|32|64))"
_ELEMENTS = "(?:H|He|Li|Be|B|C|N|O|F|Na|Mg|Al|Si|P|S|Cl|K|Ca|Ti|Cr|Mn|Fe|Co|Ni|Cu|Zn|Br|Ag|Sn|I|Ba|Pt|Au|Hg|Pb|U)"
_MOLECULE = rf"(?=[A-Za-z]*+\d)(?:{_ELEMENTS}\d{{0,3}}){{2,12}}+"
_ATTRIBUTE = (
    rf"(?:[A-Za-z_:@][\w.:\-]*+\s*+=\s*+(?:[^\s\"'=<>`]++|'[^']*+'|\"[^\"]*+\")|(?:{_BOOLEAN_ATTRIBUTES})(?![\w\-]))"
)
_ENTITY = r"&(?:#\d{1,7}+|#[xX][0-9a-fA-F]{1,6}+|[A-Za-z][A-Za-z0-9]{1,31}+);"
_TEMPLATE_PLACEHOLDER = r"\{\{[^{}\n]{1,100}+\}\}|\{%[^{}\n]{1,200}+\}|\{(?u:[\w.:!]*+)\}"
_MESSAGE_PLACEHOLDER = (
    r"\{\w++, ?(?:plural|select|selectordinal|number|date|time)\b[^{}\n]*+(?:\{[^{}\n]*+\}[^{}\n]*+)*+\}"
)
_JSON_OBJECT = (
    r"\{ ?\"[\w\- ]{1,60}+\" ?:(?![^{}\n]*?(?:[a-z]{2,} ){2}[a-z]{2,})[\x20-z|~]*+"
    r"(?:\{[\x20-z|~]*+\}[\x20-z|~]*+)*+\}"
)
_PRINTF = r"(?<![\w%])%(?:\(\w++\)|\d++\$)?+[\-+#0]*+\d*+(?:\.\d++)?+[sdifgxeroucX](?!\w)"
_BRACKETED_NOUN = rf"\[(?:(?:{_NOUNS})|[A-Z][A-Z0-9]*+(?:[ _\-][A-Z0-9]++)++)\](?![(\[])"
_KINDS = {
    # Prose first, because most of a text is prose: runs of words without any character that a piece could have.
    "prose": (
        rf"(?<!\]\()(?:(?<![\w{_LETTERS}])[A-Z]?[a-z]++(?![\w{_LETTERS}.:@/\\(^+\-<])"
        rf"|[ ,\r\n]|[^\x00-\x7f<｜{_LETTERS}])++"
    ),
    "target": (
        r"(?<=\]\()(?:<[^<>\n]*+>|[^\s()<>]++(?:\([^\s()<>]*+\)[^\s()<>]*+)*+)"
        r"(?:[ \t]++(?:\"[^\"\n]*+\"|'[^'\n]*+'))?+(?=[ \t]*+\))"
    ),
    "code": r"`++",
    "formula": rf"\$\$|\\\(|\\\[|\\begin\{{{FORMULA_ENVIRONMENTS}\}}",
    "inline_formula": (
        r"(?<![\w$])\$(?=[^\s$])[^$\n]*+(?<=\S)\$(?!\w)"
        r"|(?<![\w^])\w++(?:\^(?:\{[^{}\n]*+\}|-?\w++)|(?<=\w_)\{[^{}\n]*+\})"
    ),
    "variable": (
        r"\$\{[^{}\n]{1,80}+\}|\$[A-Za-z_]\w*+(?:->\w++|\[['\"]\w++['\"]\])++|\$[A-Z_][A-Z0-9_]*+(?!\w)"
        r"|%[A-Z_][A-Z0-9_()]*+%(?:\\[\w.\-]++)*+"
    ),
    "template_token": (
        r"<\|[^|<>\s]{1,60}+\|>|<｜[^｜<>\n]{1,60}+｜>|<</?[A-Z]{1,20}+>>"
        r"|\[/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT)\]"
    ),
    "autolink": r"<[A-Za-z][A-Za-z0-9+.\-]{1,31}+:[^\s<>]*+>|<[\w.+\-]++@[\w.\-]++>",
    "comment": r"<!--|<\?",
    "element": rf"<(?P<tag_name>{'|'.join(_CODE_ELEMENTS)})(?=[\s>])[^<>]*+(?<!/)>",
    "tag": (rf"<[A-Za-z][\w\-]*+(?:\s++{_ATTRIBUTE})*+\s*+/?+>|</?[A-Za-z_][\w\-]*+\s*+>|{_ENTITY}"),
    "placeholder": "|".join((_TEMPLATE_PLACEHOLDER, _MESSAGE_PLACEHOLDER, _JSON_OBJECT, _PRINTF, _BRACKETED_NOUN)),
    "footnote": r"\[\^[^\[\]\s]{1,100}+\]:?+",
    "label": r"\[[^\[\]\n]{1,200}+\]",
    "address": (
        r"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.\-]{1,20}+://|www\.(?=\w)|(?:mailto|tel|doi|urn|magnet|data):(?=[\w?+]))"
        r"(?:[\w\-.~:/?#@!$&'()*+,;=%\[\]]|(?u:(?<=[/=_\-%#?&])[^\W\x00-\x7f]++))++"
    ),
    "e_mail": r"(?<![\w.+\-])[\w.+\-]++@[A-Za-z0-9\-]++(?:\.[A-Za-z0-9\-]++)++",
    "handle": r"(?<![\w@.])@[A-Za-z_]\w*+(?:[./\-]\w++)*+",
    "path": "|".join((_DRIVE_PATH, _NETWORK_PATH, _ROOTED_PATH, _FILE_PATH)),
    "option": r"(?<![\w\-])--[a-z][\w\-]*+(?:=[^\s,;)\"'`<>]++)?+",
    "number": (
        rf"(?<![\w.])(?:{_UUID}|0[xX][0-9A-Fa-f]++|{_VERSION}|{_TIMESTAMP}|{_HARDWARE_ADDRESS}|{_EXPONENTIAL}|{_HASH}"
        rf"|{_MOLECULE})(?!\w)|{_MEASURE}|{_COLOUR}"
    ),
    "name": (
        rf"(?<![\w.{_LETTERS}])[A-Za-z_{_LETTERS}][\w{_LETTERS}]*+(?:(?:\.|::)[A-Za-z_]\w*+)*+"
        rf"(?:(?<=\w\w)<{_TYPES}(?:, ?{_TYPES}|<{_TYPES}>)*+>)?+"
    ),
    # A line break written as code, ``\nHello``, is not a command of LaTeX; those that begin so are listed.
    "control": (
        r"\\[nrt](?![a-z])|\\(?!nabla|new|neq?\b|neg|not|nu\b|ni\b|nmid|nolimits|nonumber|tan|tau|te[nx]|theta|tfrac|times|to\b|"
        r"top|tilde|tri|rho|right|rangle|rfloor|rceil|rm\b|ref|renew|rbrac|rvert)[nrt](?=[a-z])"
    ),
    "command": r"\\[A-Za-z]++\*?+",
    "escape": r"\\[!-/:-@\[-`{-~]",
}
_START = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()), re.ASCII)
_LABELS = {
    "code": "inline code", "formula": "formula", "inline_formula": "formula", "variable": "identifier",
    "template_token": "template token", "autolink": "URL", "comment": "HTML", "element": "HTML", "tag": "HTML",
    "target": "link", "footnote": "link", "label": "link", "address": "URL", "e_mail": "e-mail address",
    "handle": "identifier", "option": "identifier", "name": "identifier", "command": "formula",
    "control": "escape",
}  # fmt: skip
"""Kinds as pieces name them, where the name of the pattern is another."""
_DUNDER = re.compile(r"__[a-z]+(?:_[a-z]+)*__")
_CAMEL = re.compile(r"[a-z]+[0-9]*[A-Z]\w*|(?!Mac|Mc|De|La|Le|Di|Van|Fitz)[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+")
_DOTTED = re.compile(r"[A-Za-z]\w+\.[a-z]\w*|(?:\w\w+\.){2,}\w\w+")
"""``np.array`` and ``os.path.join``; not ``e.g``, ``U.S.A``, nor the end of a sentence before a capital."""
_SPECIAL_METHODS = {
    "init", "main", "name", "file", "all", "str", "repr", "call", "len", "eq", "hash", "iter", "next", "enter", "exit",
    "getitem", "setitem", "contains", "new", "del", "dict", "class", "doc", "version", "module", "slots", "add", "lt",
}  # fmt: skip
"""Python's names between two underscores; Markdown takes other words there as bold."""
_FUNCTIONS = {
    "abs", "cos", "enumerate", "exp", "gcd", "input", "int", "lcm", "len", "list", "ln", "log", "max", "min", "pow",
    "print", "range", "round", "set", "sin", "sorted", "sqrt", "str", "sum", "tan", "tuple", "zip",
}  # fmt: skip
"""Functions of mathematics and Python that are words by themselves."""
_CALL = re.compile(r"\((?:\)|(?=[\"'\d\[{\-])[^()\n]{0,200}+\)|[A-Za-z]\w{0,2}+(?:, ?\w{1,3}+)*+\))")
"""Arguments of a call: none, those that begin as values do, or short names. ``item(s)`` is not a call."""
_ARGUMENTS = re.compile(
    r"(?:\[[^\[\]{}\n]{0,200}+\]|\{(?:[^{}\n]|\{[^{}\n]*+\})*+\})++|[_^](?:\{[^{}\n]*+\}|\w)", re.ASCII
)
_COMMAND_BEFORE = re.compile(r"\\[A-Za-z]++\*?\Z")
_LONGEST_COMMAND = 20
_PROSE_COMMAND = re.compile(
    r"\\(?:text(?:bf|it|sc|sf|rm|up)?|emph|underline|(?:sub)*section|(?:sub)?paragraph|chapter|title|author|caption|footnote|item)\*?\Z"
)


class PieceSpan(NamedTuple):
    """A piece of a text: its place and its kind."""

    start: int
    end: int
    kind: str


def inline_pieces(
    text: str, start: int, end: int, *, closings: Closings, labels: frozenset[str]
) -> Iterator[PieceSpan]:
    """Yield the pieces of a paragraph from its start to its end, in order; ``labels`` are those of defined links."""
    position = start
    while match := _START.search(text, position, end):
        kind = match.lastgroup or ""
        piece_end = None if kind == "prose" else _end_of(match, kind, end, closings=closings, labels=labels)
        if piece_end is not None:
            yield PieceSpan(match.start(), piece_end, _LABELS.get(kind, kind))
        elif kind in ("inline_formula", "label", "placeholder"):
            # The whole is prose, but may have pieces inside.
            position = match.start() + 1
            continue
        position = piece_end or match.end()


def _end_of(match: re.Match[str], kind: str, limit: int, *, closings: Closings, labels: frozenset[str]) -> int | None:
    """Return the end of the piece that a match begins; null for prose."""
    end: int | None = match.end()
    if kind in ("code", "formula", "comment"):
        end = closings.end_of(match[0], match.end(), limit, in_paragraph=False)
    elif kind == "element":
        end = closings.end_of(f"<{match['tag_name']}>", match.end(), limit, in_paragraph=False) or end
    elif kind == "inline_formula":
        end = None if _is_price(match[0]) else end
    elif kind == "label":
        end = end if " ".join(match[0][1:-1].split()).lower().upper() in labels else None
    elif kind in ("address", "path"):
        end = _without_punctuation(match.string, match.start(), match.end())
        end = end if end > match.start() + 1 else None
    elif kind == "placeholder" and match[0][0] == "{":
        # The argument of a command of LaTeX is prose, or was taken with the command.
        before = max(0, match.start() - _LONGEST_COMMAND)
        end = None if _COMMAND_BEFORE.search(match.string, before, match.start()) else end
    elif kind == "name":
        end = _end_of_name(match, limit)
    elif kind == "command":
        end = _end_of_command(match, limit)
    return end


def _is_price(text: str) -> bool:
    """Return whether two dollar signs enclose prose after an amount: ``$5, or 10$`` is not a formula."""
    return text.startswith("$") and text[1].isdecimal() and " " in text and not re.search(r"[\\^_=]", text)


def _without_punctuation(text: str, start: int, end: int) -> int:
    """Return the end of an address without the punctuation of its sentence, as GitHub's Markdown does."""
    address = text[start:end]
    extra = {closing: address.count(closing) - address.count(opening) for opening, closing in ("()", "[]")}
    while end > start + 1 and (text[end - 1] in ".,:;!?'*_~" or extra.get(text[end - 1], 0) > 0):
        end -= 1
        if text[end] in extra:
            extra[text[end]] -= 1
    return end


def _end_of_name(match: re.Match[str], limit: int) -> int | None:
    """Return the end of an identifier or a call; null for a word of prose."""
    name, end = match[0], match.end()
    inner = name.strip("_")
    call = _CALL.match(match.string, end, limit)
    is_name = "_" in inner or "::" in name or name[-1] == ">" or _DOTTED.fullmatch(name)
    is_name = is_name or any(map(_CAMEL.fullmatch, name.split(".")))
    if _DUNDER.fullmatch(name) and inner in _SPECIAL_METHODS:
        is_name = True
    if call and (is_name or "." in name or _is_call(name, call[0])):
        return call.end()
    return end if is_name else None


def _is_call(name: str, arguments: str) -> bool:
    """Return whether a single word before parentheses is a function: ``f(x)`` and ``print("a")``, not ``item(s)``."""
    if arguments == "()" or arguments[1] in "\"'[{":
        return True
    if name in _FUNCTIONS or re.fullmatch(r"\([xyz](?:, ?\w)*\)", arguments):
        return arguments != "(s)"
    return len(name) == 1 and (name, arguments) != ("a", "(n)") and arguments[1:-1].isalnum()


def _end_of_command(match: re.Match[str], limit: int) -> int:
    """Return the end of a LaTeX command with its arguments, or without them if they are prose."""
    text, end = match.string, match.end()
    if _PROSE_COMMAND.match(match[0]):
        return end
    while arguments := _ARGUMENTS.match(text, end, limit):
        end = arguments.end()
    return end
