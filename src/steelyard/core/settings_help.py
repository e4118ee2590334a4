"""Settings and their explanations, read from source: names, types, defaults and docstrings of the fields of a Config.

Help texts need no more than that, and importing a stage for them would import torch. Only the expressions that a
Config is made of are evaluated: annotations, defaults, and the aliases, constants and records that these name.
"""

import ast
import builtins
import importlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, reduce
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

_PACKAGE = "steelyard"
_EVALUATED = ("typing", "collections.abc", "pathlib", "msgspec", "math")
"""Modules of other packages that annotations and defaults may use; all are imported already, or quickly."""
_IMPORTED = ("steelyard.io.verbs",)
"""Modules of ours that are imported rather than read: the classes of declarations."""
REQUIRED = msgspec.NODEFAULT
_Field: Any = type(msgspec.field(default=None))


class Setting(NamedTuple):
    """A field of a Config. ``default`` is `REQUIRED` where the field has none."""

    name: str
    type: Any
    default: Any
    meaning: str


class FunctionParameter(NamedTuple):
    """A parameter of a function. ``default`` is `REQUIRED` where it has none."""

    name: str
    type: Any
    default: Any
    is_keyword_only: bool


class _Definition(NamedTuple):
    """A top-level statement that defines a name, and the module in which it stands."""

    module: str
    name: str
    node: ast.stmt


def read_settings(module: str, name: str = "Config") -> tuple[Setting, ...]:
    """Read the fields of a Config from the source of the module that defines or re-exports it.

    Raises LookupError for a module or a name that does not exist.
    """
    return tuple(_fields(_definition(module, name)).values())


def read_nested_settings(module: str, name: str = "Config") -> tuple[Setting, ...]:
    """Read the fields of a Config; those of a Config in a field have its name before theirs: ``rules.gold_share``.

    Raises LookupError for a module or a name that does not exist.
    """
    settings: list[Setting] = []
    for setting in read_settings(module, name):
        if not isinstance(setting.default, msgspec.Struct):
            settings.append(setting)
            continue
        for inner in read_nested_settings(_definition(module, name).module, type(setting.default).__name__):
            default = reduce(getattr, inner.name.split("."), setting.default)
            settings.append(inner._replace(name=f"{setting.name}.{inner.name}", default=default))
    return tuple(settings)


def read_parameters(module: str, name: str) -> tuple[FunctionParameter, ...]:
    """Read the parameters of a function. Records among their types have their fields only."""
    definition = _definition(module, name)
    assert isinstance(definition.node, ast.FunctionDef), f"{module}.{name} is not a function"
    names, arguments = _Names(definition.module), definition.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    pairs = [(argument, default, False) for argument, default in zip(positional, defaults, strict=True)]
    pairs += [
        (argument, default, True) for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return tuple(
        FunctionParameter(
            argument.arg,
            names.evaluate(argument.annotation),
            REQUIRED if default is None else names.evaluate(default),
            is_keyword_only,
        )
        for argument, default, is_keyword_only in pairs
        if argument.arg != "config"
    )


def read_constant(module: str, name: str) -> Any:
    """Read a constant that a module itself defines; null for a module without it."""
    return _value(module, name) if name in _statements(module) else None


class _Names(Mapping[str, Any]):
    """The names of a module, each evaluated when an expression uses it."""

    def __init__(self, module: str) -> None:
        self._module = module

    def evaluate(self, expression: ast.expr | None) -> Any:
        assert expression is not None, f"{self._module}: an annotation is missing"
        code = compile(ast.Expression(expression), self._module, "eval")
        return eval(code, {}, self)

    def __getitem__(self, name: str) -> Any:
        return vars(builtins)[name] if name in vars(builtins) else _value(self._module, name)

    def __iter__(self) -> Iterator[str]:
        return iter(_statements(self._module))

    def __len__(self) -> int:
        return len(_statements(self._module))


@cache
def _value(module: str, name: str) -> Any:
    """Evaluate a name of a module: a record as a Struct of its fields, an assignment, or an import of another package.

    Raises LookupError for any other definition.
    """
    definition = _definition(module, name)
    module, name, node = definition
    if module in _IMPORTED:
        return getattr(importlib.import_module(module), name)
    names = _Names(module)
    if isinstance(node, ast.Import | ast.ImportFrom):
        alias = _alias(node, name)
        source = alias.name if isinstance(node, ast.Import) else str(node.module)
        if source not in _EVALUATED:
            raise LookupError(f"{module}.{name} is of {source}, which is not imported for help texts")
        imported = importlib.import_module(source)
        return imported if isinstance(node, ast.Import) else getattr(imported, alias.name)
    if isinstance(node, ast.ClassDef):
        fields = [
            (field.name, field.type) if field.default is REQUIRED else (field.name, field.type, field.default)
            for field in _fields(definition).values()
        ]
        return msgspec.defstruct(node.name, fields, frozen=True, kw_only=True, forbid_unknown_fields=True)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        targets = [ast.unparse(target) for target in node.targets[0].elts]
        return names.evaluate(node.value)[targets.index(name)]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return names.evaluate(node.value)
    raise LookupError(f"{module}.{name} cannot be read from source")


def _fields(definition: _Definition) -> dict[str, Setting]:
    """Return the fields of a Config by name; those of its bases come first, and may be defined again."""
    node, names = definition.node, _Names(definition.module)
    fields: dict[str, Setting] = {}
    if not isinstance(node, ast.ClassDef):  # a base of another package
        return fields
    for base in node.bases:
        if isinstance(base, ast.Name):
            fields |= _fields(_definition(definition.module, base.id))
    for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
        match following:
            case ast.Expr(value=ast.Constant(value=str(text))):
                meaning = " ".join(text.split())
            case _:
                meaning = ""
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            default = REQUIRED if statement.value is None else names.evaluate(statement.value)
            if type(default) is _Field:
                field: Any = default
                default = field.default_factory() if field.default is REQUIRED else field.default
            name, annotation = statement.target.id, names.evaluate(statement.annotation)
            fields[name] = Setting(name, annotation, default, meaning)
    return fields


@cache
def _definition(module: str, name: str) -> _Definition:
    """Return where a name is defined, following imports inside the package.

    Raises LookupError for a name that the module lacks.
    """
    node = _statements(module).get(name)
    if node is None:
        raise LookupError(f"{module} has no {name}")
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_PACKAGE):
        return _definition(str(node.module), _alias(node, name).name)
    return _Definition(module, name, node)


def _alias(node: ast.Import | ast.ImportFrom, name: str) -> ast.alias:
    return next(alias for alias in node.names if name == (alias.asname or alias.name))


@cache
def _statements(module: str) -> Mapping[str, ast.stmt]:
    """Return the top-level statements of a module by the names that they define."""
    *packages, name = module.split(".")[1:]
    folder = files(_PACKAGE).joinpath(*packages)
    file = folder.joinpath(f"{name}.py")
    path = file if file.is_file() else folder.joinpath(name, "__init__.py")
    statements: dict[str, ast.stmt] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        nested = node.body if isinstance(node, ast.If) else [node]  # names under `if TYPE_CHECKING:` too
        for statement in nested:
            statements |= dict.fromkeys(_defined(statement), statement)
    return statements


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, ast.Assign):
        targets = [name for target in node.targets for name in getattr(target, "elts", [target])]
        yield from (target.id for target in targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def table_keys(place: str) -> tuple[str, ...]:
    """Return the keys of a table in the source, in its order, such as ``steelyard.training.losses.LOSSES``."""
    module, _, name = place.rpartition(".")
    node = _definition(module, name).node
    assert isinstance(node, ast.Assign | ast.AnnAssign), f"{place} is not a table"
    assert isinstance(node.value, ast.Dict), f"{place} is not a table"
    return tuple(str(ast.literal_eval(key)) for key in node.value.keys if key is not None)


def toml_tables(path: str) -> tuple[str, ...]:
    """Return the names of the tables of a TOML file in the package, in its order."""
    return tuple(tomllib.loads(files(_PACKAGE).joinpath(*path.split("/")).read_text(encoding="utf-8")))


def default_text(value: Any) -> str:
    """Return a default as TOML, or ``none``: ``0.5``, ``"cosine"`` without its marks, ``["zh", "en"]``, ``{}``."""
    if isinstance(value, str):
        return value
    if isinstance(value, msgspec.Struct):
        # Fields at their defaults say nothing.
        fields = msgspec.structs.fields(value)
        value = {
            field.name: getattr(value, field.name) for field in fields if getattr(value, field.name) != field.default
        }
    return _toml(value)


def _toml(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {_toml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
