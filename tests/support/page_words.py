"""The page of some runs, and the words on a page that a reader of one language gets."""

from steelyard.report.page import page_strings, render
from steelyard.report.sources import read_sources
from steelyard.views.page import page_of, read_data

PRODUCTS = {
    *("Steelyard", "SHA", "SVG", "PNG", "CSV", "EN", "Best", "of", "n", "gram", "bootstrap", "Kappa", "kappa", "Brier"),
    *("Kendall", "Bradley", "Terry", "Holm", "micro", "LLM", "Elo", "τ", "tau", "p", "N", "A", "B", "C", "D", "E"),
    *("Esc", "evaluate", "resolve", "aggregate", "majority"),
}
"""Names of products, formats, statistics, keys, verbs and settings that both languages write alike."""
SILENT = {"script", "style", "noscript", "code", "pre", "annotation"}
DATA = {"text", "preview", "id", "run", "hand", "where", "author"}
"""Classes of texts of the user, and of records of runs, whose settings, files and versions keep their names."""
SPOKEN = ("title", "aria-label", "placeholder", "alt")


def words(element, language):
    """Yield every text and spoken attribute that a reader of this language gets."""
    for child in element.children:
        if isinstance(child, str):
            yield child
            continue
        classes = set(child.classes)
        hidden = "t" in classes and child.attributes.get("lang") != language
        if hidden or child.tag in SILENT or classes & DATA or child.attributes.get("data-language"):
            continue
        # A script replaces these names when the language changes.
        name = child.attributes.get(f"data-label-{language}") or child.attributes.get("aria-label")
        spoken = child.attributes | {"aria-label": name}
        yield from (spoken[name] for name in SPOKEN if spoken.get(name))
        yield from words(child, language)


def page_text(runs, language):
    data = read_data(read_sources(runs))
    return "<!doctype html>" + render(page_of(data, title=None, language=language, budget=2**22, version="1"))


def english(text):
    """The text with its marks of words resolved as the English page shows them."""
    return page_strings().translate(text, "en")
