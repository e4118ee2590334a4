"""Every example of a docstring of the API runs, and every function and result has one."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import steelyard as sy
import steelyard.api
from chat_server import record
from parallel_cases import parallel_cases
from steelyard.api.inputs import made_verbs

MODULES = [
    importlib.import_module(f"steelyard.api.{name}") for _, name, _ in pkgutil.iter_modules(steelyard.api.__path__)
]
FINDER = doctest.DocTestFinder(exclude_empty=True)
MADE = [FINDER.find(getattr(sy, name), f"verbs.{name}", globs={}) for name in made_verbs()]
EXAMPLES = {
    example.name.removeprefix("steelyard.api."): example
    for examples in (*map(FINDER.find, MODULES), *MADE)
    for example in examples
    if example.examples
}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_of_a_docstring_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "replies.jsonl", {"text": "[[A]]"})
    cases = parallel_cases()
    if name == "cases.Cases":
        cases = None  # its example makes its own
    elif name.startswith("cases.Cases."):
        cases = sy.Cases([{"prompt": "2 + 2?", "chosen": "4", "rejected": "5"}])
    example = EXAMPLES[name]
    example.globs = {"sy": sy, "cases": cases}
    output = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    assert runner.run(example, out=output.append).failed == 0, "".join(output)


def test_every_verb_has_an_example():
    functions = {name for name in sy.__all__ if inspect.isfunction(getattr(sy, name))}
    exemplified = {name.partition(".")[2] for name in EXAMPLES}
    assert functions <= exemplified
