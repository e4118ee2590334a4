"""Imports go up the list of packages, there are no cycles, and pure packages have no effects."""

import ast
from functools import cache

from package_source import ROOT, Source, imports, sources

PACKAGES = (
    "core", "statistics", "ranking", "annotation", "prompts", "responses", "translation", "curation", "io", "judging",
    "networks", "plugins", "training", "evaluation", "report", "views", "stages", "viewing", "workbench", "recipes",
    "integrations", "api", "cli",
)  # fmt: skip
WORKBENCH = (
    "storage", "pipeline", "accounts", "qualification", "figures", "views", "results", "exchange", "routes",
)  # fmt: skip
"""The packages of the workbench, in the order in which they import each other. Its own modules stand above them."""
PURE = PACKAGES[: PACKAGES.index("io")]
EFFECTS = {
    "asyncio", "datetime", "http", "io", "logging", "multiprocessing", "os", "pathlib", "random", "requests",
    "shutil", "socket", "sqlite3", "subprocess", "sys", "tempfile", "threading", "time", "urllib",
}  # fmt: skip
GLOBAL_RANDOM = ("numpy.random.seed", "numpy.random.rand", "torch.manual_seed")
HEAVY = {
    "alembic",
    "argon2",
    "fastapi",
    "jinja2",
    "nh3",
    "sqlalchemy",
    "pyarrow",
    "ray",
    "scipy",
    "sklearn",
    "starlette",
    "torch",
    "transformers",
    "uvicorn",
    "vl_convert",
}
LIGHT = ("core", "io", "judging", "plugins", "stages", "recipes", "cli")
MIN_LINES = 80
"""A shorter file whose only importer is a sibling is a part of it."""
modules = {source.module: source for source in sources()}
package = [source for source in sources() if source.parts and source.parts != ("__main__",)]


@cache
def targets(source: Source) -> set[str]:
    """The modules of the package that a file imports, also inside functions."""
    names = {imported.target for imported in imports(source) if imported.target.split(".")[0] == "steelyard"}
    imported_modules = {name if name in modules else name.rpartition(".")[0] for name in names}
    return {name for name in imported_modules if name in modules and name != source.module}


def place(module: str) -> int:
    return PACKAGES.index(module.split(".")[1])


def test_imports_go_up_the_list_only():
    upward = {
        (source.module, target)
        for source in package
        for target in targets(source)
        if target != "steelyard" and place(target) > place(source.module)
    }
    assert upward == set()


def level(module: str) -> int:
    parts = module.split(".")
    return WORKBENCH.index(parts[2]) if len(parts) > 2 and parts[2] in WORKBENCH else len(WORKBENCH)


def test_packages_of_the_workbench_import_from_those_before_them():
    upward = {
        (source.module, target)
        for source in package
        if source.module.startswith("steelyard.workbench.")
        for target in targets(source)
        if target.startswith("steelyard.workbench.") and level(target) > level(source.module)
    }
    assert upward == set()
    assert all(any(source.parts[:2] == ("workbench", name) for source in package) for name in WORKBENCH)


def test_there_are_no_cycles():
    graph = {source.module: targets(source) for source in package}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, f"a cycle: {' -> '.join((*trail, module))}"
        if module not in done:
            for target in graph.get(module, ()):
                visit(target, (*trail, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_private_modules_are_imported_inside_their_package_only():
    wrong = [
        f"{source.path} imports {target}"
        for source in package
        for target in targets(source)
        if target.rpartition(".")[2].startswith("_")
        and not f"{source.module}.".startswith(f"{target.rpartition('.')[0]}.")
    ]
    assert wrong == []


def test_a_file_is_a_whole_idea_and_no_fragment_of_a_sibling():
    importers: dict[str, set[str]] = {module: set() for module in modules}
    for source in modules.values():
        for target in targets(source):
            importers[target].add(source.module)
    fragments = {
        module
        for module, source in modules.items()
        if source.path.name != "__init__.py" and len(source.lines) < MIN_LINES and len(importers[module]) == 1
        for importer in importers[module]
        if importer.rpartition(".")[0] == module.rpartition(".")[0]
    }
    assert fragments == set(), "merge it into its only importer"


def test_names_of_transformers_are_imported_from_their_own_packages():
    wrong = [
        f"{source.path}: {line.strip()}"
        for source in package
        for line in source.lines
        if line.strip().startswith("from transformers import ")
    ]
    assert wrong == [], "the type checker would read every model of transformers: 2,500 more files, 20% of its time"


def test_stages_do_not_import_each_other():
    wrong = [
        f"{source.path} imports {target}"
        for source in package
        for target in targets(source)
        if source.parts[0] == "stages"
        and target.startswith("steelyard.stages.")
        and target.split(".")[2] != source.parts[1]
    ]
    assert wrong == []


def test_pure_packages_have_no_effects():
    pure = [source for source in package if source.parts[0] in PURE]
    wrong = [
        f"{source.path}:{one.line}: {one.target}"
        for source in pure
        for one in imports(source)
        if one.target.split(".")[0] in EFFECTS or one.target.startswith(GLOBAL_RANDOM)
    ]
    calls = ("open(", "print(", "np.random.seed", "np.random.rand", "manual_seed")
    wrong += [f"{source.path}: {call}" for source in pure for call in calls if f" {call}" in "\n".join(source.lines)]
    assert wrong == []


def test_heavy_packages_are_imported_where_they_are_used():
    wrong = [
        f"{source.path}:{one.line}: import {one.target} where it is used"
        for source in package
        for one in imports(source)
        if source.parts[0] in LIGHT
        and not (source.parts[-1].startswith("_") or source.parts[:2] == ("stages", "train"))
        and not one.is_lazy
        and one.target.split(".")[0] in HEAVY
    ]
    assert wrong == []


def test_scripts_of_documents_and_speed_import_names_that_exist():
    # They run for minutes or need data, so that no other test of this suite runs them all.
    scripts = [path for folder in ("speed", "docs") for path in sorted((ROOT / folder).rglob("*.py"))]
    missing = sorted(
        f"{path.relative_to(ROOT)} imports {imported.target}"
        for path in scripts
        for imported in imports(Source(path, ""))
        if imported.target.startswith("steelyard.") and imported.target not in modules
        if imported.target.rpartition(".")[2] not in top_level_names(imported.target.rpartition(".")[0])
    )
    assert scripts
    assert not missing


def top_level_names(module: str) -> set[str]:
    """Names that a module defines or imports at its top level."""
    if module not in modules:
        return set()
    names = {imported.target.rpartition(".")[2] for imported in imports(modules[module]) if not imported.is_lazy}
    for node in modules[module].tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets_of = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {inner.id for target in targets_of for inner in ast.walk(target) if isinstance(inner, ast.Name)}
    return names
