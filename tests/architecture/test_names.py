"""Plain names: one definition for each public class name, nouns for values, standard English in docstrings."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable

from package_source import sources

VAGUE = {"found", "given", "said", "told", "asked", "own", "one", "kept", "named", "beside"}
"""Words that tell how a value came about instead of what it is."""
IDIOM = re.compile(
    r"\b(?:is no|are no|worked out|works out|beyond doubt|so many|by heart|what is to be|of which"
    r"|stands? (?:in|at|there|beside)|is told|are told|was told|told of|which (?:is|are) asked|is asked|are asked"
    r"|[Ss]omebody|[Ww]hoever|[Ww]hatever)\b|\A(?:What|Who|How|Whether)\b"
)
PER_FILE = {"Config"}
"""Each verb and each plug-in has its own Config, and is known by its file."""
MAX_UNTYPED_OBJECTS = 22
"""`dict[str, Any]` and `Mapping[str, Any]`; JSON of other parties is `JsonObject`. The number may only shrink."""


def class_places() -> dict[str, list[str]]:
    """Return the files that define a class of each name."""
    places = defaultdict(list)
    for source in sources():
        for node in source.nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in PER_FILE:
                places[node.name].append(f"{source.module}:{node.lineno}")
    return places


def vague_names(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the vague names of values, parameters and functions in a file, with their lines."""
    names = []
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            names += [(argument.arg, node.lineno) for argument in arguments]
            names.append((node.name.lstrip("_"), node.lineno))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append((node.id, node.lineno))
    return [f"{line}: {name}" for name, line in names if name in VAGUE]


def idioms(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the idioms in the docstrings of a file: of modules, classes, functions, and below attributes."""
    strings = (node.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    docstrings = [string.value for string in strings if isinstance(string.value, str)]
    return [match for docstring in docstrings for match in IDIOM.findall(docstring)]


def untyped_objects(nodes: Iterable[ast.AST]) -> int:
    """Return the number of dictionaries of anything in the annotations of a file."""
    annotations = (
        node
        for node in nodes
        if isinstance(node, ast.Subscript) and getattr(node.value, "id", None) in ("dict", "Mapping")
    )
    return sum(ast.unparse(node.slice) in ("str, Any", "(str, Any)") for node in annotations)


def test_a_class_name_has_one_definition():
    several = {name: places for name, places in class_places().items() if len(places) > 1}
    assert several == {}


def test_values_are_named_by_their_nouns():
    places = [f"{source.path}:{name}" for source in sources() for name in vague_names(source.nodes)]
    assert places == []


def test_docstrings_are_standard_english():
    places = [f"{source.path}: {idiom}" for source in sources() for idiom in idioms(source.nodes)]
    assert places == []


def test_records_have_types():
    assert sum(untyped_objects(source.nodes) for source in sources()) <= MAX_UNTYPED_OBJECTS


def test_vague_names_and_idioms_are_recognised():
    nodes = tuple(
        ast.walk(ast.parse('def told(one, two):\n    """There is no such thing."""\n    found = [x for kept in one]\n'))
    )
    assert vague_names(nodes) == ["1: one", "1: told", "3: found", "3: kept"]
    assert idioms(nodes) == ["is no"]
    assert idioms(ast.walk(ast.parse('"""How far."""\nx = 1\n"""Why, and whatever else."""'))) == ["How", "whatever"]
    assert untyped_objects(ast.walk(ast.parse("a: dict[str, Any]\nb: dict[str, int]"))) == 1
