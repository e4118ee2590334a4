"""Every source file as a parsed tree, with its module name and imports, for the architecture tests."""

import ast
import gc
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "steelyard"


class Source:
    """A file, which is parsed when its tree is first asked for, and once in a process."""

    def __init__(self, path: Path, module: str):
        self.path, self.module = path, module

    @cached_property
    def _text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def lines(self) -> list[str]:
        return self._text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        with _no_garbage_collection():
            return ast.parse(self._text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree."""
        with _no_garbage_collection():
            return list(ast.walk(self.tree))

    @property
    def parts(self) -> tuple[str, ...]:
        """The module's parts below the package: ``("ranking", "tiers")``."""
        return tuple(self.module.split("."))[1:]


@contextmanager
def _no_garbage_collection():
    """Leave new nodes alone: to look for garbage among them takes longer than to parse them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Import(NamedTuple):
    target: str
    line: int
    is_lazy: bool


@cache
def sources() -> tuple[Source, ...]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Source(path, module))
    return tuple(found)


@cache
def imports(source: Source) -> tuple[Import, ...]:
    """Return every import, also those inside functions (``is_lazy``); ``from a import b`` counts as ``a.b``."""
    top = set(map(id, source.tree.body))
    found = []
    for node in source.nodes:
        lazy = id(node) not in top
        if isinstance(node, ast.Import):
            found += [Import(name.name, node.lineno, lazy) for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [Import(f"{node.module}.{name.name}", node.lineno, lazy) for name in node.names]
    return tuple(found)


def functions(source: Source) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in source.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
