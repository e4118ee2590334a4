"""A response as the cleaning rules see it: its text, its prose without code, formulas, addresses and quotations.

Prose is what a person would read as running text. Rules about language, marks and repetition look at prose alone, so
that a Python program in a Chinese answer, an English title in quotation marks or a formula does not count as a fault.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from steelyard.core.scripts import SCRIPTS, ScriptCodes, script_codes
from steelyard.core.text import prompt_text, response_text
from steelyard.core.types import Case, Response

Task = Literal["text", "math", "code", "safety"]
"""Purpose of a prompt, as far as the rules differ; ``safety`` prompts ask for what should be refused."""
TASKS: tuple[Task, ...] = ("text", "math", "code", "safety")

_CATEGORY_WORDS: Mapping[Task, re.Pattern[str]] = {
    "safety": re.compile(r"safety|harm|refus|jailbreak|xstest|do ?not ?answer|toxic|unsafe|安全|有害|拒绝|越狱"),
    "code": re.compile(r"\bcod(?:e|ing)|program|\bhep\b|hep-|humaneval|代码|编程|程序|软件"),
    "math": re.compile(r"\bmath|arithmetic|algebra|geometry|calculus|数学|算术|几何|代数|计算"),
}
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
# Each repetition stops at the mark that could begin the next match, so that the time stays linear.
_FORMULA = re.compile(
    r"\$\$[^$]+\$\$|\\\[(?:[^\\]|\\(?![\[\]]))*\\\]|\\\((?:[^\\]|\\(?![()]))*\\\)|\$[^$\n]{1,200}\$"
    r"|\\begin\{(?:[^\\]|\\(?!begin|end))*\\end\{\w+\*?\}|\\[a-zA-Z]+(?:\{[^{}\n]{0,200}\})*"
)
# Without the last alternative each begins with a literal, to which a search skips.
_UNREAD_ALTERNATIVES = (
    r"`[^`\n]{1,300}`",  # code within a line
    r"https?://[^\s<>，。；）】」]+",
    r"www\.[^\s<>，。；）】」]+",
    r"</?[A-Za-z][^<>\n]{0,200}>",  # markup
    "“[^”\n]{1,200}”",
    "「[^」\n]{1,200}」",
    "『[^』\n]{1,200}』",
    "«[^»\n]{1,200}»",
    "《[^》\n]{1,100}》",
    "„[^“”\n]{1,200}[“”]",
    r"\"(?<!\w\")[^\"\n]{1,200}\"(?!\w)",
    r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,63}",  # addresses of e-mail
)
_UNREAD = re.compile("|".join(_UNREAD_ALTERNATIVES))
_UNREAD_WITHOUT_MAIL = re.compile("|".join(_UNREAD_ALTERNATIVES[:-1]))
_OMITTED = "@"
"""In place of what is not prose: without letters, and not a space, so that marks around it stay where they were."""
_GLOSS = re.compile(r"[(（][^()（）\n]{1,80}[)）]")
# In a text of another script, a Latin word is a name if it has a capital letter, a digit or an underscore, if it is a
# single letter, or if a bracket follows at once: variables and functions.
_NAME = re.compile(
    r"\b(?:[A-Z][\w'.+#&-]*|\w*[\d_]\w*|[a-z]+[A-Z]\w*|[a-z]+\.(?:com|org|net|cn|io|py|js)|[a-z]|[a-z]+(?=[(\[]))\b",
    re.ASCII,
)
_LETTERS_A_CHARACTER: Mapping[str, float] = {
    "Han": 3.0,
    "Hangul": 2.0,
    "Hiragana": 1.5,
    "Katakana": 1.5,
    "Bopomofo": 1.5,
}
LETTER_WEIGHTS = np.array([0.0, *(_LETTERS_A_CHARACTER.get(name, 1.0) for name in SCRIPTS[1:])])
"""Latin letters that a letter of each script is worth: translations of Chinese have about three times as many."""


class Subject:
    """One response under the rules. Every part is computed when a rule first asks for it."""

    def __init__(self, response: Response, *, prompt: str, language: str | None, task: Task) -> None:
        self.response = response
        self.prompt = prompt
        self.language = language
        self.task = task

    @cached_property
    def text(self) -> str:
        """The text of all turns."""
        return response_text(self.response)

    @cached_property
    def without_code(self) -> str:
        """The text without blocks of code."""
        return _FENCE.sub("\n", self.text) if "```" in self.text or "~~~" in self.text else self.text

    @cached_property
    def prose(self) -> str:
        """The text without code, formulas, addresses, markup and quotations."""
        text = self.without_code
        if "$" in text or "\\" in text:
            text = _FORMULA.sub(_OMITTED, text)
        return (_UNREAD if "@" in text else _UNREAD_WITHOUT_MAIL).sub(_OMITTED, text)

    @cached_property
    def codes(self) -> ScriptCodes:
        """The script of each character of the text, as an index into `SCRIPTS`."""
        return script_codes(self.text)

    @cached_property
    def size(self) -> float:
        """The length of the text in Latin letters: a Han character counts as three."""
        return float(LETTER_WEIGHTS[self.codes].sum())

    @cached_property
    def points(self) -> NDArray[np.uint32]:
        """The code points of the text, shape (character,)."""
        return np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), np.uint32)

    @cached_property
    def is_dense(self) -> bool:
        """True for a text mostly in Han, kana or Hangul."""
        return self.size > 1.5 * max(1, np.count_nonzero(self.codes))

    def foreign_share(self, scripts: frozenset[str]) -> tuple[float, float]:
        """Return the share of prose in none of the scripts, and the prose's size, both in Latin letters.

        In prose of another script than Latin, names and glosses in Latin letters do not count.
        """
        prose = self.prose
        if "Latin" not in scripts:
            # Names first: a gloss may be the bracket after a function.
            prose = _GLOSS.sub(" ", _NAME.sub(" ", prose))
        weights = np.bincount(script_codes(prose), minlength=len(SCRIPTS)) * LETTER_WEIGHTS
        total = float(weights.sum())
        expected = sum(float(weights[SCRIPTS.index(name)]) for name in scripts)
        return (1 - expected / total if total else 0.0), total


def task_of(case: Case) -> Task:
    """Return what a prompt asks for, by its category, subset and source, else by code or formulas in the prompt."""
    prompt = case.prompt
    labels = " ".join(filter(None, (*prompt.category, prompt.subset, prompt.source))).lower().replace("_", " ")
    for task, words in _CATEGORY_WORDS.items():
        if words.search(labels):
            return task
    text = prompt_text(case)
    if "```" in text or re.search(r"^\s*(?:def|class|import|from|#include|public|function) \w", text, re.MULTILINE):
        return "code"
    return "math" if re.search(r"\$[^$\n]+\$|\\(?:frac|sqrt|sum|int)\b|\d\s*[+*/×÷^]\s*\d[^/]*=", text) else "text"
