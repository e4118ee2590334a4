"""Write conversations and tokenise them so that texts stay text: no text of a user becomes a token of the template.

A tokenizer reads a mark such as ``<|im_end|>`` wherever it is spelt out. This happens in three ways: a text spells the
mark, also one whose token is not flagged special (DeepSeek's roles); the tokenizer normalises the text into it (NFKC,
stripped accents); its vocabulary has the mark as a piece (Unigram). One rule covers all: the marks among the token ids
must be those that the template wrote, in their order. Where they are not, the text is tokenised by a twin of the
tokenizer with secret spellings of the marks. Ids of all other texts are those of the tokenizer.
"""

import json
import re
import secrets
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from steelyard.core.errors import ModelError
from steelyard.core.types import Message

TODAY = "2024-07-26"
"""The date that templates with a date write where they get none."""
_PROBES = (
    ("user",),
    ("user", "assistant"),
    ("system", "user", "assistant"),
    ("user", "assistant", "user", "assistant"),
)


class TemplateFailure(Exception):  # noqa: N818 - its text is the template's message
    """A template that refuses a conversation, fails, or exceeds its budget."""


class TemplateTooCostly(TemplateFailure):
    """A template that was stopped because it needs too much time or memory."""


class Marks(NamedTuple):
    """The tokens that only the template may write, by spelling. ``pattern`` is null where there are none.

    The rest follows from ``ids`` and is stored because every text needs it, and Gemma has 6,400 such tokens:
    ``numbers`` of the tokens, proper prefixes (``begins``) and suffixes (``ends``) of spellings, and the ``longest``.
    """

    ids: dict[str, int]
    pattern: re.Pattern[str] | None
    numbers: frozenset[int]
    begins: frozenset[str]
    ends: frozenset[str]
    longest: int

    def find(self, text: str) -> list[str]:
        """Return the marks that a text spells, in order."""
        return self.pattern.findall(text) if self.pattern else []


class Written(NamedTuple):
    """A conversation as the template writes it.

    ``stand_ins``: the private characters written for marks that the texts spell. ``edged``: the same text with
    ``edge`` around each user's text, where a mark could be spelt over that edge; else null.
    """

    text: str
    stand_ins: dict[str, str]
    marks: Marks
    edged: str | None = None
    edge: str = ""


class Tokens(NamedTuple):
    """Token ids, and whether the tokenizer alone would have read part of a user's text as marks."""

    ids: list[int]
    is_repaired: bool


class _Twin(NamedTuple):
    """A tokenizer with equal ids in which every mark has a secret spelling."""

    tokenizer: Any
    spelling: dict[str, str]


def write(
    tokenizer: Any, template: str, messages: Sequence[Message], *, today: str = TODAY,
    add_generation_prompt: bool = False,
) -> Written:  # fmt: skip
    """Return the conversation as the template writes it. Raises TemplateFailure where it cannot."""
    marks = marks_of(tokenizer, template)
    contents = [message.content for message in messages]
    stand_ins, edge = _stand_ins(marks, contents)

    def rendered(change: Callable[[str], str]) -> str:
        turns = [{"role": turn.role, "content": change(hidden(turn.content, stand_ins))} for turn in messages]
        return _render(tokenizer, template, turns, today=today, add_generation_prompt=add_generation_prompt)

    text = rendered(lambda content: content)
    if not any(_may_cross(marks, content) for content in contents):
        return Written(text, stand_ins, marks)
    edged = rendered(lambda content: _edged(content, edge))
    if edged.replace(edge, "") != text:
        raise TemplateFailure("it looks into a text whose end could be read as part of a mark")
    return Written(text, stand_ins, marks, edged, edge)


def tokenise(tokenizer: Any, written: Written, *, add: bool, strip: bool = False) -> Tokens:
    """Return the token ids of a written conversation, as `tokenise_all` does."""
    return next(tokenise_all(tokenizer, [written], add=add, strip=strip))


def tokenise_all(
    tokenizer: Any, conversations: Sequence[Written], *, add: bool, strip: bool = False
) -> Iterator[Tokens]:
    """Yield the token ids of each written conversation; ``add``: with the marks that the tokenizer adds.

    ``strip`` removes white space at the end. A fast tokenizer reads the texts side by side. Raises ModelError, in the
    turn of its conversation, where a text becomes a mark even in the twin.
    """
    texts = [written.text.rstrip() if strip else written.text for written in conversations]
    is_plain = [not written.stand_ins and written.edged is None for written in conversations]
    plain = [text for text, is_alone in zip(texts, is_plain, strict=True) if is_alone]
    # The rendering counts and cuts: the tokenizer need not warn of its own limit.
    rows = iter(tokenizer(plain, add_special_tokens=add, truncation=False, verbose=False).input_ids if plain else ())
    for written, text, is_alone in zip(conversations, texts, is_plain, strict=True):
        if is_alone:
            ids = next(rows)
            if _marks_among(ids, written.marks) == _expected(tokenizer, written.marks, text, add=add):
                yield Tokens(ids, is_repaired=False)
                continue
        base = text if written.edged is None else written.edged.rstrip() if strip else written.edged
        yield Tokens(_repaired(tokenizer, written, base, add=add), is_repaired=True)


def _repaired(tokenizer: Any, written: Written, base: str, *, add: bool) -> list[int]:
    """Return the token ids by the twin; ``base`` is the text, with its edges where there are any."""
    marks = written.marks
    twin = _twin(tokenizer, tuple(sorted(marks.ids.items())))
    if any(spelling in base for spelling in twin.spelling.values()):
        raise ModelError(
            "a text contains the secret spelling of a mark",
            where=tokenizer.name_or_path,
            do="run it again: the spelling is drawn anew",
        )
    frame = marks.pattern.sub(lambda mark: twin.spelling[mark.group()], base) if marks.pattern else base
    for mark, character in written.stand_ins.items():
        frame = frame.replace(character, mark)
    ids = twin.tokenizer.encode(frame.replace(written.edge, "") if written.edge else frame, add_special_tokens=add).ids
    extra = Counter(_marks_among(ids, marks)) - Counter(_expected(tokenizer, marks, base, add=add))
    if extra:
        problem = f"the tokenizer turns a text into its mark of id {next(iter(extra))}, however it is written"
        raise ModelError(problem, where=tokenizer.name_or_path, do="take that text out, or use another model")
    return ids


def hidden(text: str, stand_ins: Mapping[str, str]) -> str:
    """Return the text with the stand-in for each mark."""
    for mark in sorted(stand_ins, key=len, reverse=True):
        text = text.replace(mark, stand_ins[mark])
    return text


@lru_cache(maxsize=8)
def marks_of(tokenizer: Any, template: str) -> Marks:
    """Return the tokens that a text must not become: special ones, and added ones that the template writes.

    Other added tokens are ordinary text: Gemma's runs of spaces, a code model's keywords.
    """
    added = {token.content: number for number, token in tokenizer.added_tokens_decoder.items() if token.content}
    special = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
    names = special | set(tokenizer.all_special_tokens)
    sources = [template, *_probed(tokenizer, template)]
    names |= {name for name in added if name.strip() and any(name in source for source in sources)}
    ids = added | {name: tokenizer.convert_tokens_to_ids(name) for name in tokenizer.all_special_tokens}
    marks: dict[str, int] = {name: ids[name] for name in names if name}
    longest_first: list[str] = sorted(marks, key=len, reverse=True)
    return Marks(
        ids=marks,
        pattern=re.compile("|".join(map(re.escape, longest_first))) if marks else None,
        numbers=frozenset(marks.values()),
        begins=frozenset(name[:end] for name in marks for end in range(1, len(name))),
        ends=frozenset(name[start:] for name in marks for start in range(1, len(name))),
        longest=max(map(len, marks), default=0),
    )


def _render(
    tokenizer: Any, template: str, turns: Sequence[Mapping[str, str]], *, today: str, add_generation_prompt: bool
) -> str:
    """Return the template's text, within its budget; Jinja is imported only here."""
    import jinja2

    from steelyard.networks.templates import TooMuchWork, render_template

    try:
        return render_template(
            template,
            turns,
            today=today,
            add_generation_prompt=add_generation_prompt,
            marks=tokenizer.special_tokens_map,
        )
    except TooMuchWork as error:
        raise TemplateTooCostly(str(error)) from error
    except jinja2.TemplateError as error:
        raise TemplateFailure(str(error)) from error


def _probed(tokenizer: Any, template: str) -> list[str]:
    """Return the template's text around short contents, in which marks that it composes are spelt out."""
    texts = []
    for roles, is_asking in product(_PROBES, (False, True)):
        turns = [{"role": role, "content": "a"} for role in roles]
        try:
            texts.append(_render(tokenizer, template, turns, today=TODAY, add_generation_prompt=is_asking))
        except TemplateTooCostly:
            raise
        except TemplateFailure:
            continue  # it refuses these roles, and may accept others
    return texts


def _stand_ins(marks: Marks, texts: Sequence[str]) -> tuple[dict[str, str], str]:
    """Return an unused private character for each mark that a text spells, and one more for edges."""
    joined = "\0".join(texts)
    spelt = dict.fromkeys(marks.find(joined))
    free = (character for character in map(chr, range(0xF0000, 0xFFFFE)) if character not in joined)
    edge = next(free)
    return dict(zip(spelt, free, strict=False)), edge


def _may_cross(marks: Marks, content: str) -> bool:
    """Return whether a mark could be spelt across a boundary of this text."""
    sizes = range(1, min(marks.longest, len(content) + 1))
    shapes = {content, content.strip()}
    return any(text[:size] in marks.ends or text[-size:] in marks.begins for text in shapes if text for size in sizes)


def _edged(content: str, edge: str) -> str:
    """Return the text with an edge character on both sides, inside the white space that templates may trim."""
    core = content.strip()
    if not core:
        return content
    start = content.index(core)
    return f"{content[:start]}{edge}{core}{edge}{content[start + len(core) :]}"


def _marks_among(ids: Sequence[int], marks: Marks) -> list[int]:
    return [number for number in ids if number in marks.numbers]


def _expected(tokenizer: Any, marks: Marks, text: str, *, add: bool) -> list[int]:
    """Return the ids of the marks that the template wrote, and of those that the tokenizer adds."""
    inside = [marks.ids[mark] for mark in marks.find(text)]
    if not add:
        return inside
    before, behind = _added(tokenizer)
    return [*_marks_among(before, marks), *inside, *_marks_among(behind, marks)]


@lru_cache(maxsize=8)
def _added(tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the token ids that the tokenizer adds before and after a text."""
    around, inside = tokenizer("a").input_ids, tokenizer("a", add_special_tokens=False).input_ids
    start = around.index(inside[0])
    return tuple(around[:start]), tuple(around[start + len(inside) :])


@lru_cache(maxsize=4)
def _twin(tokenizer: Any, marks: tuple[tuple[str, int], ...]) -> _Twin:
    """Return the tokenizer with each mark spelt by letters drawn in each process, which no text can contain.

    Raises ModelError for a tokenizer without a ``tokenizer.json``.
    """
    from tokenizers import Tokenizer

    if not tokenizer.is_fast:
        problem = "a text spells a mark of the template, and a tokenizer without tokenizer.json cannot be kept from it"
        raise ModelError(problem, where=tokenizer.name_or_path, do="save the tokenizer as a fast one beside the model")
    drawn = "".join(secrets.choice(string.ascii_lowercase) for _ in range(16))
    letters = ("".join(string.ascii_lowercase[int(digit)] for digit in str(number)) for _, number in marks)
    spelling = {mark: f"\U00100000{drawn}{word}\U00100000" for (mark, _), word in zip(marks, letters, strict=True)}
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    for token in rules["added_tokens"]:
        token["content"] = spelling.get(token["content"], token["content"])
    # An ordinary text could match the marks in the vocabulary.
    model = rules["model"]
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = {spelling.get(piece, piece): number for piece, number in vocabulary.items()}
    else:
        model["vocab"] = [[spelling.get(piece, piece), *score] for piece, *score in vocabulary]
    if "unk_token" in model and model["unk_token"] is not None:
        model["unk_token"] = spelling.get(model["unk_token"], model["unk_token"])
    if "merges" in model:
        pairs = [merge.split(" ", 1) if isinstance(merge, str) else merge for merge in model["merges"]]
        model["merges"] = [pair for pair in pairs if not {*pair, "".join(pair)} & spelling.keys()]
    rules["truncation"] = rules["padding"] = None
    twin = Tokenizer.from_str(json.dumps(rules))
    assert all(twin.token_to_id(spelling[mark]) == number for mark, number in marks), "the twin has the same ids"
    return _Twin(twin, spelling)
