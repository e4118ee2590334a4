"""Precision and recall of the cleaning rules, rule by rule, on real text that was damaged on purpose and as it is.

    python studies/cleaning_rules.py damaged DATA
    python studies/cleaning_rules.py demo
    python studies/cleaning_rules.py real DATA
    python studies/cleaning_rules.py endings DATA

DATA is a folder with the published files of HumanEval-XL, XCOPA, HalluQA, XSTest, MultiJail, OpenAssistant and the MQM
ratings of WMT 2023. `damaged` takes real sentences in 29 languages and gives each one fault; `demo` takes the worse
answers of the built-in corpus; `real` takes answers of models as they are; `endings` is about `no_final_mark` alone, on
whole answers of people and on the same answers cut off. Tables are Markdown, intervals are Wilson's.
"""

import csv
import json
import re
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer

from steelyard.core.numerics import generator
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cleaned_lines import rule_measures
from steelyard.responses.cleaning import clean_case
from steelyard.responses.lengths import LengthBounds
from steelyard.responses.rules import RULES, findings
from steelyard.responses.subject import Subject
from steelyard.stages.simulate import Config as SimulateConfig
from steelyard.stages.simulate import simulate

APP = typer.Typer(help=__doc__, add_completion=False)
HUMANEVAL = {
    "Afrikaans": "af", "Arabic": "ar", "Bulgarian": "bg", "Chinese": "zh", "Dutch": "nl", "English": "en",
    "Estonian": "et", "Finnish": "fi", "French": "fr", "German": "de", "Greek": "el", "Hebrew": "he",
    "Hungarian": "hu", "Indonesian": "id", "Italian": "it", "Malay": "ms", "Persian": "fa", "Portuguese": "pt",
    "Russian": "ru", "Spanish": "es", "Tagalog": "tl", "Turkish": "tr", "Vietnamese": "vi",
}  # fmt: skip
ENOUGH = 60
SEED = 1
TRUNCATION = {"no_final_mark", "open_bracket", "open_block"}
REPETITION = {"repeated_text", "repeated_lines", "compressible"}
LANGUAGE = {"wrong_language", "code_switched"}


class Text(NamedTuple):
    """A real text, its language and what it answers."""

    text: str
    language: str
    prompt: str


class Damage(NamedTuple):
    """A fault made on purpose, and the rules of which one at least should be broken."""

    name: str
    rules: set[str]
    make: Callable[[Text, Sequence[Text], np.random.Generator], str | None]


def real_texts(data: Path) -> Iterator[Text]:
    """Descriptions of programming tasks, sentences of stories, and translations: whole texts with a final mark."""
    for name, code in HUMANEVAL.items():
        for line in (data / "humaneval_xl_python" / "data" / "python" / f"{name}.jsonl").open(encoding="utf-8"):
            found = re.search(r'("""|\'\'\')(.*?)(?:>>>|\1)', json.loads(line)["prompt"], re.DOTALL)
            if found:
                yield Text(" ".join(found[2].split()), code, "What does this function have to do? Please describe it.")
    for folder in sorted((data / "xcopa" / "data").iterdir()):
        for file in folder.glob("test*.jsonl"):
            rows = [json.loads(line) for line in file.open(encoding="utf-8")]
            for start in range(0, len(rows) - 3, 4):
                parts = [row[key] for row in rows[start : start + 4] for key in ("premise", "choice1")]
                yield Text(" ".join(parts), folder.name, "Tell a short story with several people in it, please.")


def is_whole(text: Text) -> bool:
    """Whether a text ends as sentences do: descriptions that end in a list or a formula are no sentences."""
    return len(text.text) >= 30 and re.search(r"[.!?。！？।]$", text.text) is not None


def cut(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """The first 35 to 80 %, broken off inside a sentence."""
    start = text.text[: round(len(text.text) * rng.uniform(0.35, 0.8))]
    return re.sub(r"[\W_]+$", "", start) or None


def other_language(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """A real text in another language."""
    foreign = [other for other in others if not same(other.language, text.language)]
    return foreign[rng.integers(len(foreign))].text


def in_english(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """A real English text."""
    english = [other for other in others if other.language == "en"]
    return None if text.language == "en" else english[rng.integers(len(english))].text


def switched(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """Half of the sentences, and at least one, are in another language."""
    sentences = re.findall(r".+?[.!?。！？।]+\s*", text.text)
    foreign = re.findall(r".+?[.!?。！？।]+\s*", other_language(text, others, rng) or "")
    if len(sentences) < 2 or not foreign:
        return None
    for place in rng.choice(len(sentences), len(sentences) // 2, replace=False):
        sentences[place] = foreign[rng.integers(len(foreign))].rstrip() + " "
    return "".join(sentences)


def same(first: str, second: str) -> bool:
    """Whether two languages are not told apart here."""
    return first == second or {first, second} == {"id", "ms"}


def misread(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """UTF-8 read as Windows-1252: what a wrong encoding makes of letters beyond ASCII."""
    if sum(ord(character) > 127 for character in text.text) < 4:
        return None
    return text.text.encode().decode("cp1252", "replace")


def misread_gbk(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """UTF-8 read as GBK."""
    return text.text.encode().decode("gbk", "replace") if text.language in ("zh", "ja") else None


def broken_bytes(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """One byte of a character is lost, as where a stream was cut inside it."""
    encoded = bytearray(text.text.encode())
    places = [place for place, byte in enumerate(encoded) if byte > 0xBF]
    if not places:
        return None
    del encoded[places[rng.integers(len(places))]]
    return encoded.decode("utf-8", "replace")


def shuffled(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """Words and marks in random order, characters where words are not spaced."""
    units = re.findall(r"[^\W\u2e80-\u9fff]+|[^\s]", text.text)
    rng.shuffle(units)
    return ("" if text.language in ("zh", "ja") else " ").join(units)


def looped(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """The last sentence eight more times."""
    last = re.findall(r".+?(?:[.!?。！？।]+\s*|$)", text.text)[-1]
    return f"{text.text} " + f"{last.strip()} " * 8


def looped_word(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """The last word sixty times."""
    words = text.text.rstrip(".!?。！？।").split()
    return f"{text.text} " + f"{words[-1][-6:]} " * 60


def listed(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """One line of a list ten times, with numbers that count up."""
    return f"{text.text}\n" + "\n".join(f"{number}. {text.text[:60]}" for number in range(1, 11))


LEFT = ("<|im_end|>", "<|eot_id|>", " [INST] ", "</s>", "\n### Response:\n", "\nHuman: ", "</think>\n", "<end_of_turn>")


def leftover(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """A mark of a chat template, and the beginning of the text again."""
    return f"{text.text}{LEFT[rng.integers(len(LEFT))]}{text.text[:20]}."


def echoed(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """The prompt, then the answer."""
    return f"{text.prompt}\n{text.text}"


def open_fence(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """The text and a block of code that is cut off."""
    return f"{text.text}\n```python\ndef total(values):\n    result = 0\n    for value in values:\n        resu"


def only_a_beginning(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """Two characters."""
    return text.text[:2] + "."


def many_times_as_long(text: Text, others: Sequence[Text], rng: np.random.Generator) -> str | None:
    """All texts of the language together."""
    own = [other.text for other in others if other.language == text.language]
    pieces = [own[index] for index in rng.permutation(len(own))]
    joined = "\n".join(pieces)
    return joined if len(joined) > 6000 else None


DAMAGES = (
    Damage("cut off", TRUNCATION, cut),
    Damage("cut off in a block of code", {"open_block"}, open_fence),
    Damage("last sentence eight times", REPETITION, looped),
    Damage("last word sixty times", REPETITION, looped_word),
    Damage("one line in a list of ten", REPETITION, listed),
    Damage("UTF-8 read as Windows-1252", {"garbled"}, misread),
    Damage("UTF-8 read as GBK (zh)", {"garbled"}, misread_gbk),
    Damage("a byte lost", {"garbled"}, broken_bytes),
    Damage("words shuffled", {"misplaced_marks"}, shuffled),
    Damage("in English", {"wrong_language"}, in_english),
    Damage("in another language", {"wrong_language"}, other_language),
    Damage("every second sentence in another language", LANGUAGE, switched),
    Damage("left-over mark of a template", {"template_leftover"}, leftover),
    Damage("prompt first", {"prompt_echo"}, echoed),
    Damage("two characters", {"too_short"}, only_a_beginning),
    Damage("much longer than the others", {"too_long"}, many_times_as_long),
)


def broken_rules(text: str, language: str | None, prompt: str, lengths: LengthBounds, **more: str) -> set[str]:
    """The names of the rules that a response breaks."""
    case = Case(
        prompt=Prompt(id="p", messages=(Message(role="user", content=prompt),), language=language, **more),
        responses=(Response(id="r", text=text),),
    )
    measures = rule_measures("identify", lengths)
    return {row.rule for row in clean_case(case, measures, RULES).rows}


def wilson_interval(hits: int, number: int, z: float = 1.96) -> tuple[float, float]:
    """The score interval of a share (Wilson, 1927)."""
    middle, spread = hits + z * z / 2, z * (hits * (number - hits) / number + z * z / 4) ** 0.5
    return (middle - spread) / (number + z * z), (middle + spread) / (number + z * z)


def share(hits: int, number: int) -> str:
    """A share with its interval and its numbers."""
    if not number:
        return "–"
    low, high = wilson_interval(hits, number)
    return f"{hits / number:.1%} [{low:.1%}, {high:.1%}] ({hits:,} of {number:,})"


LENGTHS = LengthBounds(10, 3000)


@APP.command()
def damaged(data: Path) -> None:
    """Recall by kind of damage, false positives by rule and language on the whole texts, precision by rule."""
    texts: dict[str, list[Text]] = defaultdict(list)
    for text in filter(is_whole, real_texts(data)):
        texts[text.language].append(text)
    rng = generator(SEED, "damage")
    chosen = {name: [own[i] for i in rng.permutation(len(own))[:ENOUGH]] for name, own in sorted(texts.items())}
    everything = [text for own in chosen.values() for text in own]
    clean: dict[str, list[set[str]]] = {
        name: [broken_rules(text.text, name, text.prompt, LENGTHS) for text in own] for name, own in chosen.items()
    }
    num_clean = len(everything)
    false = Counter(rule for own in clean.values() for broken in own for rule in broken)
    right: Counter[str] = Counter()
    print("| damage | rules | found | found by any rule | worst languages |\n|---|---|---|---|---|")
    for damage in DAMAGES:
        rng = generator(SEED, damage.name)
        found: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
        for text in everything:
            made = damage.make(text, everything, rng)
            if made is None:
                continue
            broken = broken_rules(made, text.language, text.prompt, LENGTHS)
            right.update(broken & damage.rules)
            found[text.language].append((bool(broken & damage.rules), bool(broken)))
        hits = [hit for own in found.values() for hit, _ in own]
        anything = [hit for own in found.values() for _, hit in own]
        worst = sorted(found, key=lambda name: np.mean([hit for hit, _ in found[name]]))[:4]
        named = ", ".join(f"{name} {np.mean([hit for hit, _ in found[name]]):.0%}" for name in worst)
        print(
            f"| {damage.name} | {', '.join(sorted(damage.rules))} | {share(sum(hits), len(hits))} "
            f"| {share(sum(anything), len(anything))} | {named} |"
        )
    print("\n| rule | whole texts that break it | precision at one damaged text for each whole one |\n|---|---|---|")
    num_damages = Counter(rule for damage in DAMAGES for rule in damage.rules)
    for rule in RULES:
        wrong, hits = false[rule.name], right[rule.name] / max(1, num_damages[rule.name])
        precision = f"{hits / (hits + wrong):.1%}" if num_damages[rule.name] and hits + wrong else "–"
        print(f"| {rule.name} | {share(wrong, num_clean)} | {precision} |")
    print("\n| language | whole texts | that break a rule | rules |\n|---|---|---|---|")
    for name, own in clean.items():
        rules = Counter(rule for broken in own for rule in broken)
        print(f"| {name} | {len(own)} | {sum(map(bool, own))} | {dict(rules.most_common(3))} |")


@APP.command()
def demo(out: Path = Path("cleaning-demo")) -> None:
    """Which rules each kind of worse answer of the built-in corpus breaks, and which its good answers break."""
    simulate(out, SimulateConfig(), force=True)
    broken: dict[str, list[set[str]]] = defaultdict(list)
    for line in (out / "kinds.jsonl").open(encoding="utf-8"):
        case = json.loads(line)
        prompt = "\n".join(turn["content"] for turn in case["prompt"]["messages"])
        for response in case["responses"]:
            kind = response["meta"]["made_by"]
            language = case["prompt"]["language"]
            category = tuple(case["prompt"]["category"][1:])
            rules = broken_rules(response["text"], language, prompt, LENGTHS, category=category)
            broken[f"{kind} {language}"].append(rules)
    print("| kind | n | broken any rule | rules |\n|---|---|---|---|")
    for kind, own in sorted(broken.items()):
        rules = Counter(rule for each in own for rule in each)
        named = ", ".join(f"{rule} {number}" for rule, number in rules.most_common(4))
        print(f"| {kind} | {len(own)} | {share(sum(map(bool, own)), len(own))} | {named} |")


@APP.command()
def real(data: Path) -> None:
    """Refusals against people's labels (XSTest), and what the rules find in answers as they are."""
    hits: Counter[tuple[str, str, bool]] = Counter()
    for file in sorted((data / "xstest" / "model_completions").glob("*.csv")):
        for row in csv.DictReader(file.open(encoding="utf-8")):
            found = "refusal" in broken_rules(row["completion"], "en", row["prompt"], LENGTHS)
            for model in (file.stem.rpartition("_")[2], "all"):
                hits[model, row["final_label"][2:], found] += 1
    print("| model | recall of full refusals | precision, partial ones right | precision, partial ones wrong |")
    print("|---|---|---|---|")
    for model in sorted({model for model, _, _ in hits}):
        labels = ("full_refusal", "partial_refusal", "full_compliance")
        full, partial, none = (hits[model, name, True] for name in labels)
        recall = share(full, full + hits[model, "full_refusal", False])
        flagged = full + partial + none
        print(f"| {model} | {recall} | {share(full + partial, flagged)} | {share(full, flagged)} |")
    print("\n| answers | n | rules |\n|---|---|---|")
    for name, texts in as_they_are(data).items():
        rules = Counter(rule for text in texts for rule in broken_rules(*text, LENGTHS))
        named = ", ".join(f"{rule} {number / len(texts):.1%} ({number:,})" for rule, number in rules.most_common())
        print(f"| {name} | {len(texts):,} | {named} |")


@APP.command()
def endings(data: Path) -> None:
    """The rule no_final_mark: whole texts that it flags, and answers of three sentences and more, cut off, it finds."""
    sets = as_they_are(data)
    for line in (data / "oasst1_en_validation" / "en-validation.jsonl").open(encoding="utf-8"):
        row = json.loads(line)
        if row["role"] == "assistant":
            sets["OpenAssistant, answers of people (en)"].append((row["text"], "en", ""))
    print("| texts | n | flagged |\n|---|---|---|")
    for name, texts in sets.items():
        print(f"| {name} | {len(texts):,} | {share(sum(has_open_end(*text[:2]) for text in texts), len(texts))} |")
    rng = generator(SEED, "endings")
    for name, texts in sets.items():
        whole = [text for text in texts if name.startswith("OpenAssistant") and has_three_sentences(text[0])]
        cuts = [(cut(Text(text, language, prompt), [], rng), language) for text, language, prompt in whole]
        if found := [has_open_end(text, language) for text, language in cuts if text]:
            print(f"| {name}, cut off | {len(found):,} | {share(sum(found), len(found))} |")


def has_open_end(text: str, language: str) -> bool:
    """Whether a text breaks the rule no_final_mark."""
    rules = [rule for rule in RULES if rule.name == "no_final_mark"]
    subject = Subject(Response(id="r", text=text), prompt="", language=language, task="text")
    return bool(findings(subject, rule_measures("scripts", LENGTHS), rules))


def has_three_sentences(text: str) -> bool:
    """Whether a text has at least three sentences, the last one with its mark, and no block of code."""
    marks = re.findall(r"[.!?。！？](?=\s|$|[^\x00-\x7f])", text)
    return len(marks) >= 3 and re.search(r"[.!?。！？][\"'”’」）)\]*]*\s*$", text) is not None and "```" not in text


def as_they_are(data: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Answers with their language and their prompt: of 24 models to HalluQA, of people in OpenAssistant, and others."""
    sets: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for file in sorted((data / "halluqa" / "Chinese_LLMs_outputs").rglob("*.json")):
        rows = json.loads(file.read_text(encoding="utf-8"))
        sets["HalluQA, 24 models (zh)"] += [(row["response"], "zh", row["question"]) for row in rows]
    for row in json.loads((data / "halluqa" / "HalluQA.json").read_text(encoding="utf-8")):
        answers = [row.get(f"Best Answer{number}") for number in range(1, 5)]
        sets["HalluQA, best answers of people (zh)"] += [(text, "zh", row["Question"]) for text in answers if text]
    for row in json.loads((data / "oasst1_zh_rm" / "oaast_rm_zh.json").read_text(encoding="utf-8")):
        prompt = row["instruction"] + row["input"]
        sets["OpenAssistant, best answers of people (zh)"].append((row["output"][0], "zh", prompt))
    for row in csv.DictReader((data / "multijail" / "data" / "MultiJail.csv").open(encoding="utf-8-sig")):
        for code in ("en", "zh", "it", "vi", "ar", "ko", "th", "bn", "sw", "jv"):
            sets["MultiJail, prompts as texts (10 languages)"].append((row[code], code, ""))
    for pair, languages in (("zhen", ("zh", "en")), ("ende", ("en", "de"))):
        seen: set[tuple[str, str]] = set()
        for archive in (data / "wmt_mqm" / "generalMT2023" / pair).glob("*.tar.gz"):
            with tarfile.open(archive) as opened:
                file = opened.extractfile(opened.getmembers()[0])
                assert file is not None
                for row in csv.DictReader(file.read().decode().splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
                    seen.add((re.sub("</?v>", "", row["source"]), re.sub("</?v>", "", row["target"])))
        sets[f"WMT translations ({pair})"] += [(target, languages[1], "") for _, target in sorted(seen)]
        sets[f"WMT sources as translations ({pair})"] += [(source, languages[1], "") for source in {s for s, _ in seen}]
    return sets


if __name__ == "__main__":
    APP()
