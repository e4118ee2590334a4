"""The law of the floors: a file imports only from lower floors or its own room, and there are no circles."""

import pytest

from house_source import PACKAGE, Source, imports, sources

FLOORS = ("core", "methods", "files", "plugins", "stages", "pipelines", "doors")
ROOMS = (
    "measures",
    "prompts",
    "responses",
    "annotation",
    "ranking",
    "curation",
    "training",
    "translation",
    "reporting",
)
EFFECTS = {
    "asyncio", "datetime", "http", "io", "logging", "multiprocessing", "os", "pathlib", "random", "requests",
    "shutil", "socket", "sqlite3", "subprocess", "sys", "tempfile", "threading", "time", "urllib",
}  # fmt: skip
GLOBAL_RANDOM = ("numpy.random.seed", "numpy.random.rand", "torch.manual_seed")
HEAVY = {"altair", "jinja2", "pyarrow", "ray", "scipy", "sklearn", "torch", "transformers", "vl_convert"}
own = [source for source in sources() if source.parts and source.parts != ("__main__",)]
"""All but the file that ``python -m steelyard`` runs, which is a door to the doors."""


def inner(source: Source) -> list[tuple[tuple[str, ...], int]]:
    return [
        (tuple(one.target.split("."))[1:], one.line)
        for one in imports(source)
        if one.target.split(".")[0] == "steelyard"
    ]


@pytest.mark.parametrize("source", own, ids=lambda source: source.module)
def test_imports_go_downwards(source):
    floor = FLOORS.index(source.parts[0])
    for target, line in inner(source):
        assert target, f"{source.path}:{line}: imports the whole package"
        assert target[0] in FLOORS, f"{source.path}:{line}: {target} is on no floor"
        assert FLOORS.index(target[0]) <= floor, f"{source.path}:{line}: {target} is on a higher floor"


@pytest.mark.parametrize("source", [one for one in own if one.parts[0] == "methods"], ids=lambda one: one.module)
def test_rooms_of_methods_keep_their_order(source):
    if len(source.parts) == 1:
        return
    assert source.parts[1] in ROOMS, f"{source.path}: {source.parts[1]} is no room of methods"
    for target, line in inner(source):
        if target[0] == "methods":
            assert ROOMS.index(target[1]) <= ROOMS.index(source.parts[1]), f"{source.path}:{line}: a later room"


@pytest.mark.parametrize("source", [one for one in own if one.parts[0] == "plugins"], ids=lambda one: one.module)
def test_a_plugin_imports_no_other_plugin(source):
    for target, line in inner(source):
        # A file beside the rooms is no plug-in: it says how plug-ins are chosen, or what several rooms share.
        if target[0] == "plugins" and len(target) > 2 and (PACKAGE / "plugins" / target[1]).is_dir():
            # Its own torch half is part of it, and the half may name the Config of its plug-in.
            is_part = target[2].startswith("_") or f"_{target[2]}" == source.parts[-1]
            is_other = target[1] != source.parts[1] or not is_part
            assert not is_other, f"{source.path}:{line}: {'.'.join(target)} is another plug-in"


@pytest.mark.parametrize("source", [one for one in own if one.parts[0] == "stages"], ids=lambda one: one.module)
def test_stages_do_not_import_each_other(source):
    for target, line in inner(source):
        if target[0] == "stages" and len(target) > 1:
            assert target[1] == source.parts[1], f"{source.path}:{line}: {'.'.join(target)} is another stage"


@pytest.mark.parametrize(
    "source", [one for one in own if one.parts[0] in ("core", "methods")], ids=lambda source: source.module
)
def test_methods_and_core_are_pure(source):
    for one in imports(source):
        assert one.target.split(".")[0] not in EFFECTS, f"{source.path}:{one.line}: {one.target} has effects"
        assert not one.target.startswith(GLOBAL_RANDOM), f"{source.path}:{one.line}: {one.target} is global state"
    text = "\n".join(source.lines)
    for call in ("open(", "print(", "np.random.seed", "np.random.rand", "manual_seed"):
        assert f" {call}" not in text, f"{source.path}: {call} is an effect"


@pytest.mark.parametrize("source", own, ids=lambda source: source.module)
def test_heavy_packages_are_imported_where_they_are_used(source):
    is_torch_half = source.path.name.startswith("_") and source.parts[-1] != "__init__"
    is_methods = source.parts[0] == "methods" or source.parts[:2] == ("stages", "train")
    if is_torch_half or is_methods:
        return
    for one in imports(source):
        if not one.is_lazy:
            assert one.target.split(".")[0] not in HEAVY, f"{source.path}:{one.line}: import {one.target} where used"


def test_there_are_no_circles():
    # A plug-in imports its own torch half inside `build`, and the half may name the plug-in's Config: no circle.
    graph = {
        source.module: {
            ".".join(("steelyard", *target))
            for target, _ in inner(source)
            if not (source.parts[0] == "plugins" and target[:3] == (*source.parts[:2], f"_{source.parts[-1]}"))
        }
        for source in own
    }
    modules = set(graph)
    edges = {
        module: {name for target in targets for name in (target, target.rpartition(".")[0]) if name in modules}
        - {module}
        for module, targets in graph.items()
    }
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, f"a circle: {' -> '.join((*trail, module))}"
        if module not in done:
            for target in edges[module]:
                visit(target, (*trail, module))
            done.add(module)

    for module in sorted(edges):
        visit(module, ())
