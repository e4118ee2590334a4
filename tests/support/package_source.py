"""Every source file as a parsed tree, with its module name and imports, for the architecture tests."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "steelyard"


class Source(NamedTuple):
    path: Path
    module: str
    tree: ast.Module
    lines: list[str]

    @property
    def parts(self) -> tuple[str, ...]:
        """The module's parts below the package: ``("ranking", "tiers")``."""
        return tuple(self.module.split("."))[1:]


class Import(NamedTuple):
    target: str
    line: int
    is_lazy: bool


@cache
def sources() -> tuple[Source, ...]:
    parsed = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        parsed.append(Source(path, module, ast.parse(text), text.splitlines()))
    return tuple(parsed)


def imports(source: Source) -> list[Import]:
    """Return every import, also those inside functions (``is_lazy``); ``from a import b`` counts as ``a.b``."""
    top = set(map(id, source.tree.body))
    found = []
    for node in ast.walk(source.tree):
        lazy = id(node) not in top
        if isinstance(node, ast.Import):
            found += [Import(name.name, node.lineno, lazy) for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [Import(f"{node.module}.{name.name}", node.lineno, lazy) for name in node.names]
    return found


def functions(source: Source) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
