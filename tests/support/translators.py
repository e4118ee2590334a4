"""Translators that are simulated: they write each word in Cyrillic letters, and keep or spoil what they are given."""

import re

from steelyard.core.comparison import Reply
from steelyard.judging.asking import as_request

_LATIN = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC = "абцдефгхийклмнопярстуввхыз"
_LETTERS = str.maketrans(_LATIN + _LATIN.upper(), _CYRILLIC + _CYRILLIC.upper())
_KEPT = re.compile(r"⟦[A-Z]*\d+⟧|^=== .* ===$", re.MULTILINE)


def in_cyrillic(text):
    """The text in Cyrillic letters, except marks and the lines between the sections of a document."""
    parts, end = [], 0
    for kept in _KEPT.finditer(text):
        parts += [text[end : kept.start()].translate(_LETTERS), kept[0]]
        end = kept.end()
    return "".join([*parts, text[end:].translate(_LETTERS)])


def is_document(question):
    return question.messages[-1].content.endswith(" end ===")


class Translator:
    """Answers questions by ``write(question, number)``, and remembers what it was asked; ``number`` counts from 0."""

    name = "simulated"

    def __init__(self, write=lambda question, number: in_cyrillic(question.messages[-1].content)):
        self.write, self.asked, self.replies = write, [], {}

    def known(self, question):
        key = as_request(question, self).id
        if key not in self.replies:
            said = self.write(question, len(self.asked))
            self.asked.append(question)
            self.replies[key] = said if isinstance(said, Reply) else Reply(request=key, text=said)
        return self.replies[key]

    def protocol(self):
        return {"model": self.name}


class Engine(Translator):
    """A translator that reads no instructions."""

    def check_languages(self, source, target):
        """Every pair is known."""


ANSWERS = ("It is a small town at the river, and boats stop there every day.", "Nobody knows where this town lies.")
QUESTION = "Where is the old town of number {}, please?"
SENTENCES = {
    "Russian": {
        QUESTION: "Скажите, пожалуйста, где находится старый город под номером {}?",
        ANSWERS[0]: "Это небольшой город у реки, и лодки останавливаются там каждый день.",
        ANSWERS[1]: "Никто не знает, где находится этот город.",
    },
    "Ukrainian": {
        QUESTION: "Скажіть, будь ласка, де знаходиться старе місто під номером {}?",
        ANSWERS[0]: "Це невелике місто біля річки, і човни зупиняються там щодня.",
        ANSWERS[1]: "Ніхто не знає, де знаходиться це місто.",
    },
}


def translation_of(text, language="Russian"):
    """The text with each of the sentences in another language, as a person translated them."""
    for source, target in SENTENCES[language].items():
        before, _, after = map(re.escape, source.partition("{}"))
        pattern = f"{before}(\\d+){after}" if "{}" in source else before
        text = re.sub(pattern, lambda match, target=target: target.format(*match.groups()), text)
    return text


def as_asked(question):
    """The body of a request to a server, answered as a person translates it."""
    language = next(name for name in SENTENCES if f"into {name}" in question["messages"][0]["content"])
    return translation_of(question["messages"][-1]["content"], language)
