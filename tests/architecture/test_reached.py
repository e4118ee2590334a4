"""Every public name of the package is reached by the package itself, or by a how-to that a user runs.

What tests alone call is no part of what users get: a test of it says nothing about the tool.
"""

import ast
import re
from collections.abc import Iterator

from package_source import ROOT, sources
from steelyard.io.verbs import stage_verbs

PLUGIN = {"Config", "build", "KINDS", "MEASURE", "VIEW", "ENDPOINTS"}
"""Names by which plug-ins, measures and routes are loaded."""
CALLED_BY_LIBRARIES = {
    "format_help",
    "predict_proba",
    "readable",
    "scanDelims",
    "visit_Compare",
    "visit_Concat",
    "visit_For",
    "visit_Getitem",
    "visit_Output",
}
"""Methods of classes that libraries call (Typer, scikit-learn, `io.RawIOBase`, Jinja, markdown-it)."""


ROUTERS = {"router", "description", "figures"}
"""Objects whose decorators make a function the answer to requests."""


def is_route(node: ast.AST) -> bool:
    """Whether a function answers requests: FastAPI calls it."""
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Attribute)
        and isinstance(decorator.func.value, ast.Name)
        and decorator.func.value.id in ROUTERS
        for decorator in node.decorator_list
    )


def definitions(tree: ast.Module) -> Iterator[str]:
    """Functions and classes, their methods, and module-level values; routes are left out."""
    for node in tree.body:
        if is_route(node):
            continue
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from (inner.name for inner in node.body if isinstance(inner, ast.FunctionDef))
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def uses(nodes: list[ast.AST]) -> Iterator[str]:
    """Names that are read, attributes and keywords; importing a name alone is no use of it."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg


def test_every_public_name_is_used_by_the_package_or_a_how_to():
    used = {name for source in sources() for name in uses(source.nodes)}
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.*") if path.suffix in (".md", ".py")]
    pages += [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.html")]
    used |= set(re.findall(r"\w+", " ".join(pages)))
    exported = {name for source in sources() if source.path.name == "__init__.py" for name in exported_by(source.tree)}
    used |= exported | PLUGIN | CALLED_BY_LIBRARIES | called_by_name()
    unreached = sorted(
        f"{source.module}.{name}"
        for source in sources()
        for name in definitions(source.tree)
        if not name.startswith("_")
        and name not in used
        # Alembic reads the names of migrations.
        and ".migrations.versions." not in source.module
        # A verb calls the function of its stage's name; a recipe calls NAME_stage where the verb writes a single file.
        and source.module != f"steelyard.stages.{name.removesuffix('_stage')}"
    )
    assert unreached == [], "delete it, or let a verb, the API or a plug-in use it"


def called_by_name() -> set[str]:
    """The functions of stages that the declarations of their verbs name."""
    verbs = stage_verbs().values()
    return {verb.prepare for verb in verbs if verb.prepare} | {name for verb in verbs for _, name in verb.instead}


def exported_by(tree: ast.Module) -> Iterator[str]:
    """The names that a package hands on."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            yield from (one.name for one in node.names)
