"""How much planted damage the checks of translations find, and how many unchanged translations they flag.

    python studies/translation/damage.py DATA [--held-out] [--seed 0] [--number 200] [--kind NAME] [--alarms 500]
        [--half even|odd] [--misses]

DATA is a folder with the published files of XCOPA, HumanEval-XL, HumanEvalPack, WMT 2023 (MQM) and MultiJail. Each kind
of damage is planted into one text of a case at a time, where that text can have it. Limits of lengths are learned from
the unchanged set. Tables are in Markdown, with Wilson intervals; ``--held-out`` measures false alarms on MultiJail.
``--kind`` plants one kind of damage alone, and repeats; ``--alarms`` is the most unchanged items of a language.
``--half`` takes every other item of each language: rules are tuned on the misses and false alarms of the even ones,
which ``--misses`` prints, and measured on the odd ones.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import numpy as np
import typer
from corpora import Parallel, composed, humaneval, multijail, wmt, xcopa
from msgspec.structs import replace

from steelyard.core.numerics import generator
from steelyard.core.types import Case
from steelyard.translation.bench_lengths import length_limits
from steelyard.translation.damage import find_damage
from steelyard.translation.damage_kinds import DAMAGE_KINDS
from steelyard.translation.language_tables import WITHOUT_SPACES
from steelyard.translation.negation import Negations, negations
from steelyard.translation.passages import Passage, passages
from steelyard.translation.wording import target_languages

Rng = np.random.Generator
Plant = Callable[[Passage, Passage, Rng, list[str]], str | None]
"""Returns the damaged translation of a text, null where the text cannot have the damage."""

_NUMBER = re.compile(r"(?<![\w.,-])\d+(?![\w.,-])")
_OPTION = re.compile(r"^([A-D])\)", re.MULTILINE)
_LETTERS = {"A": "А", "B": "Б", "C": "В", "D": "Г"}
_INSERTED = {
    "en": "not never cannot", "zh": "不是 没有 并不 从不 无法", "ja": "ない ません", "ko": "지_않", "th": "ไม่",
    "de": "nicht nie kein keine", "fr": "pas jamais", "es": "no nunca", "pt": "não nunca", "it": "non mai",
    "nl": "niet geen nooit", "af": "nie geen nooit", "ru": "не никогда", "uk": "не ніколи", "bg": "не никога няма",
    "pl": "nie nigdy", "cs": "není nikdy", "tr": "değil asla yok", "fi": "ei eivät en", "et": "ei pole mitte",
    "hu": "nem soha nincs", "el": "δεν ποτέ μην", "he": "לא אין אינו", "ar": "لا ليس لم لن", "fa": "نیست هرگز",
    "hi": "नहीं", "bn": "না নয়", "vi": "không chưa chẳng", "id": "tidak bukan belum jangan", "ms": "tidak bukan belum",
    "tl": "hindi wala", "sw": "hakuna si", "ht": "pa_te pa_janm",
}  # fmt: skip
"""Words of negation that are added, of each language the most usual ones."""
_PREFIX = re.compile(
    r"(?:non|no|não|nicht|niet|nie|ne|ei|epä|mitte|nem|tidak|tak|bukan|không|hindi|icke|ikke|μη|не|غير|غیر|نا|אי|गैर"
    r"|非|不为|不為)[ -]?",
    re.IGNORECASE,
)
_LEFTOVERS = (
    ("", "<|im_end|>"), ("[INST] ", " [/INST]"), ("Here is the translation:\n\n", ""), ("Translation: ", ""),
    ("", "</s>"),
    ("Sure! Here's the translated text: ", ""), ("Übersetzung: ", ""), ("以下是翻译：", ""), ("Traducción: ", ""),
    ("Перевод: ", ""), ("翻訳：", ""), ("الترجمة: ", ""), ("I'm sorry, but I can't translate this text. ", ""),
)  # fmt: skip


def with_text(case: Case, place: int, text: str) -> Case:
    """The case with another text: of the prompt (0) or of a response."""
    if place == 0:
        message = replace(case.prompt.messages[0], content=text)
        return replace(case, prompt=replace(case.prompt, messages=(message,)))
    answers = list(case.responses)
    answers[place - 1] = replace(answers[place - 1], text=text)
    return replace(case, responses=tuple(answers))


def sentences(target: Passage) -> list[str]:
    """The sentences as they stand in the whole text."""
    return [sentence for sentence in target.sentences if sentence in target.text]


def plant_language(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """The text in another language of the set, or the English one; texts of 20 letters and more."""
    if sum(target.scripts.values()) < 20 or sum(source.scripts.values()) < 20 or not others:
        return None
    return others[rng.integers(len(others))]


def plant_script(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """Chinese in the other script."""
    if target.language != "zh" or target.scripts["Han"] < 10:
        return None
    from opencc import OpenCC

    changed = OpenCC("s2t").convert(target.text)
    return changed if changed != target.text else None


def plant_untranslated(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """One sentence of the source in place of one of several, of five words (ten Han characters) and more."""
    kept = [each for each in source.sentences if len(each.split()) >= 5 or (source.code == "zh" and len(each) >= 12)]
    ours = sentences(target)
    if len(ours) < 2 or not kept:
        return None
    return target.text.replace(ours[rng.integers(len(ours))], kept[rng.integers(len(kept))], 1)


def plant_loop(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """The last words of the text ten times more."""
    text = target.text.rstrip()
    if target.blocks or target.code_lines:
        return None
    tail = text[-12:] if target.code in ("zh", "th") else " " + " ".join(text.split()[-int(rng.integers(2, 5)) :])
    return text + 10 * tail if any(map(str.isalpha, tail)) else None


def plant_missing(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """One sentence less, of two to eight."""
    ours = sentences(target)
    if not target.is_segmented or not 2 <= len(ours) <= 8 or len(source.sentences) != len(ours):
        return None
    return target.text.replace(ours[rng.integers(len(ours))], "", 1)


def plant_length(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """A fifth of the text with its final mark; texts of 40 letters and more."""
    if target.size < 40:
        return None
    return target.text[: len(target.text) // 5] + target.text.rstrip()[-1]


def plant_cut(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """The text without its last third, within a word."""
    text = target.text.rstrip()
    cut = text[: int(len(text) * 0.67)]
    if not source.text.rstrip().endswith((".", "。", "!", "?")) or not cut or not cut[-1].isalpha():
        return None
    return cut if target.is_segmented else None


def plant_number(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """A number that occurs once in both texts changed into another one of the same length."""
    known = {each for each, count in Counter(re.findall(r"\d+", source.prose)).items() if count == 1}
    places = [
        match for match in _NUMBER.finditer(target.prose) if match[0] in known and target.text.count(match[0]) == 1
    ]
    if not places:
        return None
    number = places[rng.integers(len(places))][0]
    other = str((int(number[-1]) + int(rng.integers(1, 10))) % 10)
    changed = number[:-1] + other
    return None if changed in known else target.text.replace(number, changed, 1)


def proofs(sentence: str, words: Negations, roles: Collection[str] = ("proof",)) -> list[re.Match[str]]:
    """The words of a sentence that prove a negation, outside idioms."""
    pattern = re.compile(words.roles.pattern, re.IGNORECASE)
    return [match for match in pattern.finditer(f" {sentence} ") if match.lastgroup in roles]


def plant_lost_negation(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """A sentence without the words that prove a negation, where both texts have some; others such as "un-" stay."""
    ours, theirs = negations(target.code), negations(source.code)
    if ours is None or theirs is None:
        return None
    for before, after in zip(source.sentences, target.sentences, strict=False):
        if proofs(before, theirs) and proofs(after, ours) and after in target.text:
            changed = f" {after} "
            for match in reversed(proofs(after, ours, ("proof", "concord"))):
                changed = f"{changed[: match.start()]} {changed[match.end() :]}"
            changed = changed.strip()
            # Capitals stay: a sentence that began with a small letter would be a part of the one before it.
            return target.text.replace(after, changed[:1].upper() + changed[1:], 1)
    return None


def plant_lost_prefix(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """A property such as "non-empty" without its prefix, or its sentence without its only word of negation."""
    ours, theirs = negations(target.code), negations(source.code)
    if ours is None or theirs is None:
        return None
    for before, after in zip(source.sentences, target.sentences, strict=False):
        if not proofs(before, theirs, ("prefixed",)) or after not in target.text:
            continue
        prefixed, words = proofs(after, ours, ("prefixed",)), proofs(after, ours)
        if not prefixed and len(words) != 1:
            continue
        changed = f" {after} "
        for match in reversed(prefixed[:1] or proofs(after, ours, ("proof", "concord"))):
            rest = _PREFIX.sub("", match[0].strip(), count=1) if prefixed else ""
            changed = f"{changed[: match.start()]}{rest}{changed[match.end() :]}"
        changed = changed.strip()
        return target.text.replace(after, changed[:1].upper() + changed[1:], 1)
    return None


def plant_negation(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """A word of negation after the first word of a sentence whose source has none."""
    ours, theirs = negations(target.code), negations(source.code)
    choices = _INSERTED.get(target.code, "").split()
    if ours is None or theirs is None or not choices:
        return None
    word = choices[rng.integers(len(choices))].replace("_", " ")
    for before, after in zip(source.sentences, target.sentences, strict=False):
        if proofs(before, theirs) or proofs(after, ours) or after not in target.text:
            continue
        if target.code in WITHOUT_SPACES:
            middle = len(after) // 2
            # No word is written between a letter and its signs.
            while middle < len(after) and unicodedata.category(after[middle]) == "Mn":
                middle += 1
            return target.text.replace(after, after[:middle] + word + after[middle:], 1)
        first, _, rest = after.partition(" ")
        return target.text.replace(after, f"{first} {word} {rest}", 1) if rest else None
    return None


def plant_code(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """A changed line of code: another operator, name, indentation, or bracket of full width."""
    lines = [
        line
        for line in ("\n".join(target.blocks) or "\n".join(target.code_lines)).split("\n")
        if "(" in line and ">>>" not in line
    ]
    if not lines:
        return None
    line = lines[rng.integers(len(lines))]
    name = re.search(r"[a-z_]{3,}(?=\()", line)
    changed = [
        line.replace("(", "（", 1),
        line + " x",
        line.replace(name[0], f"{name[0]}_x", 1) if name else f"{line};",
    ]
    if line.startswith(" "):
        changed.append(line.lstrip())
    return target.text.replace(line, changed[rng.integers(len(changed))], 1)


def plant_lines(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """All lines outside code joined by blanks, as translators do that translate sentence by sentence; three or more."""
    if len(target.lines) < 3 or target.blocks:
        return None
    return " ".join(target.text.split())


def plant_item(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """A list without one of its numbered items."""
    items = [line for line in target.lines if re.match(r"\d\. ", line)]
    return target.text.replace(items[rng.integers(len(items))] + "\n", "", 1) if len(items) >= 2 else None


def plant_option(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """Letters of options in another script."""
    if not _OPTION.search(target.text):
        return None
    return _OPTION.sub(lambda match: f"{_LETTERS[match[1]]})", target.text)


def plant_leftover(source: Passage, target: Passage, rng: Rng, others: list[str]) -> str | None:
    """A mark of a template, or the opening or refusal of a translator."""
    before, after = _LEFTOVERS[rng.integers(len(_LEFTOVERS))]
    return before + target.text + after


PLANTS: dict[str, tuple[str, Plant]] = {
    "empty": ("empty", lambda *_: ""),
    "another language": ("wrong_language", plant_language),
    "source text": (
        "wrong_language",
        lambda source, target, *_: source.text if sum(source.scripts.values()) >= 20 else None,
    ),
    "another Chinese script": ("wrong_script", plant_script),
    "source sentence": ("untranslated", plant_untranslated),
    "loop": ("repeated", plant_loop),
    "sentence missing": ("sentences", plant_missing),
    "a fifth of the text": ("length", plant_length),
    "cut off": ("truncated", plant_cut),
    "number changed": ("number", plant_number),
    "negation lost": ("negation", plant_lost_negation),
    "prefix lost": ("negation", plant_lost_prefix),
    "negation added": ("negation", plant_negation),
    "code changed": ("code", plant_code),
    "lines joined": ("structure", plant_lines),
    "item lost": ("structure", plant_item),
    "option letters": ("option_letter", plant_option),
    "left-over": ("leftover", plant_leftover),
}


ALL_KINDS = (*PLANTS, "equal_responses", "swapped_responses")


def share(hits: int, number: int) -> str:
    """A share with its interval and its numbers."""
    if not number:
        return "-"
    z = 1.96
    middle, spread = hits + z * z / 2, z * (hits * (number - hits) / number + z * z / 4) ** 0.5
    low, high = (middle - spread) / (number + z * z), (middle + spread) / (number + z * z)
    return f"{hits / number:.1%} [{low:.1%}, {high:.1%}] ({hits:,} of {number:,})"


def is_code(case: Parallel, place: int) -> bool:
    """Whether a text is a program, which is the same on both sides."""
    return place > 0 and case.source.responses[place - 1].text == case.target.responses[place - 1].text


def measure_recall(
    sets: dict[str, dict[str, list[Parallel]]],
    number: int,
    seed: int,
    kinds: Collection[str] = ALL_KINDS,
    *,
    misses: bool = False,
) -> None:
    """Print the share of planted damage that is found, by kind and set, and by kind and language."""
    by_set, by_language = (
        defaultdict[tuple[str, str], list[tuple[bool, bool]]](list),
        defaultdict[tuple[str, str], list[bool]](list),
    )
    for name, languages in sets.items():
        for language, items in languages.items():
            rng = generator(seed, f"{name}-{language}")
            limits = length_limits(items)
            cases = list[tuple[str, Parallel]]()
            unchanged = dict[str, set[str]]()
            for place in rng.permutation(len(items))[:number]:
                item = items[place]
                before = find_damage(*item, limits=limits, languages=target_languages([item.target])[0])
                unchanged[item.source.prompt.id] = {each.kind for each in before}
                for kind in (each for each in PLANTS if each in kinds):
                    plant = PLANTS[kind][1]
                    damaged = planted(item, plant, rng, languages=languages, language=language, number=int(place))
                    if damaged is not None:
                        cases.append((kind, Parallel(item.source, damaged)))
                cases += [(kind, case) for kind, case in responses_planted(item) if kind in kinds]
            identified = target_languages(each.target for _, each in cases)
            for (kind, case), names in zip(cases, identified, strict=True):
                found = {each.kind for each in find_damage(case.source, case.target, limits=limits, languages=names)}
                expected = PLANTS[kind][0] if kind in PLANTS else kind
                # What the published translation already has is not the planted damage.
                known = unchanged[case.source.prompt.id]
                if expected in known:
                    continue
                found -= known
                hit = expected in found or (expected == "wrong_language" and "wrong_script" in found)
                by_set[kind, name].append((hit, bool(found)))
                by_language[kind, language].append(hit)
                if misses and not hit:
                    print_miss(f"{kind}, {name}, {language}", case)
    print_recall(list(sets), by_set, by_language)


def print_miss(name: str, case: Parallel) -> None:
    """Print the texts of a case with damage that no check found."""
    print(f"### {name}")
    for source, target in zip(*map(passages, case), strict=True):
        print(f"- {source.place}: {source.prose!r}\n  {target.prose!r}")


def print_recall(
    names: list[str],
    by_set: dict[tuple[str, str], list[tuple[bool, bool]]],
    by_language: dict[tuple[str, str], list[bool]],
) -> None:
    """Print the tables of recall."""
    print(
        "| planted | by its own check: all | by any check: all | "
        + " | ".join(names)
        + " |\n|---|---|---|"
        + "---|" * len(names)
    )
    for kind in (each for each in ALL_KINDS if any(by_set[each, name] for name in names)):
        rows = [each for name in names for each in by_set[kind, name]]
        each_set = [share(sum(hit for hit, _ in by_set[kind, name]), len(by_set[kind, name])) for name in names]
        total = share(sum(hit for hit, _ in rows), len(rows)), share(sum(found for _, found in rows), len(rows))
        print(f"| {kind} | {' | '.join(total)} | {' | '.join(each_set)} |")
    print("\nLanguages below 95%, own check:\n")
    for (kind, language), hits in sorted(by_language.items()):
        if sum(hits) < 0.95 * len(hits):
            print(f"- {kind}, {language}: {share(sum(hits), len(hits))}")


def planted(
    item: Parallel, plant: Plant, rng: Rng, *, languages: dict[str, list[Parallel]], language: str, number: int
) -> Case | None:
    """The target case with damage in one of its texts; null where none can have it."""
    texts = list(zip(passages(item.source), passages(item.target), strict=True))
    for place in rng.permutation(len(texts)):
        source, target = texts[place]
        if is_code(item, int(place)) and plant is not plant_code:
            continue
        others = [
            passages(items[number].target)[place].text
            for name, items in languages.items()
            if name not in (language, {"id": "ms", "ms": "id", "nl": "af", "af": "nl"}.get(language))
            and number < len(items)
        ]
        text = plant(source, target, rng, others)
        if text is not None and text != target.text:
            return with_text(item.target, int(place), text)
    return None


def responses_planted(item: Parallel) -> Iterable[tuple[str, Parallel]]:
    """The case with equal responses, and with swapped ones."""
    answers = item.target.responses
    if len(answers) < 2 or answers[0].text == answers[1].text:
        return
    yield "equal_responses", Parallel(item.source, with_text(item.target, 2, answers[0].text or ""))
    swapped = with_text(with_text(item.target, 1, answers[1].text or ""), 2, answers[0].text or "")
    yield "swapped_responses", Parallel(item.source, swapped)


def measure_false_alarms(sets: dict[str, dict[str, list[Parallel]]], *, misses: bool = False) -> None:
    """Print the share of unchanged translations with a finding, by kind and set, and by language."""
    kinds = defaultdict[str, Counter[str]](Counter)
    totals, by_language = Counter[str](), defaultdict[str, list[bool]](list)
    for name, languages in sets.items():
        for language, items in languages.items():
            limits = length_limits(items)
            for item, names in zip(items, target_languages(each.target for each in items), strict=True):
                findings = find_damage(item.source, item.target, limits=limits, languages=names)
                found = {each.kind for each in findings}
                if misses:
                    for each in findings:
                        print(f"### {name}, {language}: {each.kind}\n- {each.before!r}\n  {each.after!r}")
                kinds[name].update(found | ({"any"} if found else set()))
                totals[name] += 1
                if name != "HumanEval-XL":
                    by_language[language].append(bool(found))
    names = list(sets)
    print("| finding | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for kind in (*DAMAGE_KINDS, "any"):
        print(f"| {kind} | " + " | ".join(share(kinds[name][kind], totals[name]) for name in names) + " |")
    print("\n| language | any finding |\n|---|---|")
    for language, hits in sorted(by_language.items()):
        print(f"| {language} | {share(sum(hits), len(hits))} |")


def main(
    data: Path,
    *,
    held_out: bool = False,
    alarms: int = 500,
    kind: list[str] = [],  # noqa: B006 - typer copies it
    seed: int = 0,
    number: int = 60,
    half: str = "",
    misses: bool = False,
) -> None:
    """Print the tables."""
    if held_out:
        measure_false_alarms({"MultiJail": dict(multijail(data))})
        return
    sets = {
        "XCOPA": dict(xcopa(data)),
        "composed": dict(composed(data, 60)),
        "WMT": dict(wmt(data)),
        "HumanEval-XL": dict(humaneval(data)),
    }
    if half:
        first = ("even", "odd").index(half)
        sets = {name: {code: items[first::2] for code, items in each.items()} for name, each in sets.items()}
    measure_false_alarms(
        {name: {language: items[:alarms] for language, items in each.items()} for name, each in sets.items()},
        misses=misses,
    )
    print()
    measure_recall(sets, number, seed, kind or ALL_KINDS, misses=misses)


if __name__ == "__main__":
    typer.run(main)
