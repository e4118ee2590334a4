"""How long a report of many items takes in a browser from navigation to the first row of the table of items.

Run: python speed/page.py --chromium /usr/bin/chromium   (writes speed/results/page.json; no other load)

It needs Chromium and `pip install playwright`, which are no dependencies of the project. The page has two models and is
made by the verbs: `evaluate --scores` twice, then `report`. The time is that of the page itself, `performance.now()`:
when the first row is in the document, and when the frame with it is drawn. Each opening has a browser of its own.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from steelyard.core.numerics import generator

RESULTS = Path(__file__).parent / "results" / "page.json"
MEASURED = ("first row", "first frame", "all figures")
CATEGORIES, LANGUAGES = 20, ("en", "zh", "de", "ar")
WATCH = """
const watch = new MutationObserver(() => {
  if (!window.firstRow && document.querySelector("#browser tbody tr")) {
    window.firstRow = performance.now();
    requestAnimationFrame(() => setTimeout(() => { window.firstFrame = performance.now(); }));
  }
  if (!window.allFigures && document.body && document.body.dataset.drawn) window.allFigures = performance.now();
});
watch.observe(document, { childList: true, subtree: true, attributeFilter: ["data-drawn"] });
"""


def write_inputs(folder, number):
    """Write cases of three answers of 40 to 120 random words, and the scores of two models."""
    random = generator(0, "page")
    words = ["".join(chr(97 + letter) for letter in random.integers(0, 26, random.integers(2, 9))) for _ in range(5000)]

    def text(least, most):
        return " ".join(words[at] for at in random.integers(0, len(words), random.integers(least, most)))

    cases, scores = [], {"a": [], "b": []}
    for at in range(number):
        name, language = f"prompt-{at}", LANGUAGES[at % len(LANGUAGES)]
        messages = [{"role": "user", "content": text(10, 40)}]
        prompt = {"id": name, "language": language, "category": [f"category {at % CATEGORIES}"], "messages": messages}
        answers = [{"id": answer, "text": text(40, 120)} for answer in "xyz"]
        cases.append({"format": 1, "prompt": prompt, "responses": answers, "ranking": [["x"], ["y"], ["z"]]})
        for model, lead in (("a", 1.0), ("b", 0.5)):
            drawn = random.normal(size=3) + np.array([lead, 0.0, -lead])
            row = {"prompt": name, "language": language, "scores": dict(zip("xyz", drawn.tolist(), strict=True))}
            scores[model].append(row)
    for name, rows in {"cases": cases, **scores}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_page(folder, number):
    """Return the report of both models, made by the command line."""
    write_inputs(folder, number)
    steelyard = str(Path(sys.executable).parent / "steelyard")
    for model in "ab":
        words = ["evaluate", "--bench", "cases.jsonl", "--scores", f"{model}.jsonl", "--out", f"evaluated-{model}"]
        subprocess.run([steelyard, *words], cwd=folder, check=True, capture_output=True)
    words = ["report", "evaluated-a", "evaluated-b", "--out", "report.html"]
    subprocess.run([steelyard, *words], cwd=folder, check=True, capture_output=True)
    return folder / "report.html"


def opened(playwright, chromium, page):
    """Return the seconds to the first row, the frame with it, and all figures, and the version of the browser."""
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.add_init_script(WATCH)
    tab.goto(page.as_uri(), wait_until="commit")
    tab.wait_for_selector("body[data-drawn]", state="attached", timeout=120_000)
    times = tab.evaluate("[window.firstRow, window.firstFrame, window.allFigures]")
    browser_version = browser.version
    browser.close()
    return {name: taken / 1000 for name, taken in zip(MEASURED, times, strict=True)}, browser_version


def spread(own):
    return {"min": round(min(own), 2), "median": round(statistics.median(own), 2), "max": round(max(own), 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="the browser's executable")
    parser.add_argument("--page", type=Path, help="a report to open instead of making one")
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = (asked.page or make_page(Path(folder), asked.items)).resolve()
        times = [opened(playwright, asked.chromium, page) for _ in range(asked.rounds)]
        num_bytes = page.stat().st_size
    found = {
        "command": f"python speed/page.py --items {asked.items} --rounds {asked.rounds}",
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}",
        "chromium": times[0][1],
        "playwright": version("playwright"),
        "num_items": asked.items,
        "megabytes": round(num_bytes / 1e6, 1),
        "rounds": asked.rounds,
        "seconds": {name: spread([one[name] for one, _ in times]) for name in times[0][0]},
        "load_average": round(os.getloadavg()[0], 2),
    }
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
