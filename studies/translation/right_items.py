"""How many right translations the whole verb `translate --check-only` accuses, with what a bench teaches.

    python studies/translation/right_items.py DATA

DATA is a folder with the published files of XCOPA, MultiJail, WMT 2023 (MQM) and HumanEval-XL. English is the source,
and Chinese of WMT zh-en; XCOPA has another English for each language, so that each is a bench of its own. Descriptions
of HumanEval-XL are those without examples, which the translations have not. Tables are in Markdown, with Wilson
intervals; the worst language is the one with the largest share.
"""

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import typer
from corpora import HUMANEVAL, Parallel, multijail, parallel, sentences, wmt, xcopa
from damage import share

from steelyard.io.cases import encode_case
from steelyard.stages.translate import Config, translate


def descriptions(data: Path) -> Iterator[tuple[str, list[Parallel]]]:
    """The descriptions of HumanEval-XL by language, as prompts without responses."""
    for language, texts in sentences(data).items():
        if language in HUMANEVAL:
            rows = [row for row in texts if not row[0].startswith("xcopa")]
            yield language, [parallel(task, ("en", language), (before, after), []) for task, before, after in rows]


def benches(data: Path) -> Iterator[tuple[str, dict[str, list[Parallel]]]]:
    """The name and the translations of each bench by language."""
    for language, items in xcopa(data):
        yield "XCOPA", {language: items}
    yield "MultiJail", dict(multijail(data))
    for language, items in wmt(data):
        yield f"WMT, {items[0].source.prompt.language}-{items[0].target.prompt.language}", {language: items}
    yield "HumanEval-XL, descriptions", dict(descriptions(data))


def accused(languages: dict[str, list[Parallel]]) -> dict[str, list[set[str]]]:
    """The kinds of findings of each item by language, as the verb writes them."""
    cases = {
        case.prompt.id + str(case.prompt.language): case for each in languages.values() for it in each for case in it
    }
    source = next(iter(languages.values()))[0].source.prompt.language
    with tempfile.TemporaryDirectory() as folder:
        bench, out = Path(folder) / "bench.jsonl", Path(folder) / "checked"
        bench.write_bytes(b"".join(map(encode_case, cases.values())))
        translate(bench, out, Config(check_only=True, source=source))
        rows = [json.loads(line) for line in (out / "findings.jsonl").read_text(encoding="utf-8").splitlines()]
    kinds = defaultdict[tuple[str, str], set[str]](set)
    for row in rows:
        kinds[row["prompt"], row["language"]].add(row["kind"])
    return {
        name: [kinds[each.target.prompt.id, str(each.target.prompt.language)] for each in items]
        for name, items in languages.items()
    }


def main(data: Path) -> None:
    """Print the tables."""
    found = defaultdict[str, dict[str, list[set[str]]]](dict)
    for name, languages in benches(data):
        found[name] |= accused(languages)
    print("| set | right items with a finding | worst language | kinds |\n|---|---|---|---|")
    for name, by_language in found.items():
        worst = max(by_language, key=lambda key: sum(map(bool, by_language[key])) / len(by_language[key]))
        items = [kinds for each in by_language.values() for kinds in each]
        kinds = Counter(kind for each in items for kind in each).most_common()
        cells = (share(sum(map(bool, each)), len(each)) for each in (items, by_language[worst]))
        print(f"| {name} | {' | '.join((next(cells), f'{worst} {next(cells)}'))} | {kinds} |")


if __name__ == "__main__":
    typer.run(main)
