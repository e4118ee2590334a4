"""Render chat templates, which come with models and are foreign code, in Jinja's sandbox with a budget of work.

The cost of every loop, call, filter and text in time or memory is charged to the budget before the work is done: a
template that would never end, or fill the memory, fails at the same place on every machine and in any thread. For that
the syntax tree is changed before it is compiled; the output of a template is not.

Differs from: transformers, whose sandbox bounds one ``range`` and nothing else.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import date
from functools import lru_cache, wraps
from types import BuiltinMethodType
from typing import Any, cast

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

_LONGEST_TEMPLATE = 500_000
_BASE_BUDGET = 500_000
_BUDGET_PER_CHARACTER = 100
_PER_LOOP = 4
_LARGEST_ARGUMENT = 100_000
_MOST_BITS = 10_000
_SHALLOW = {
    "attr", "count", "d", "default", "first", "items", "last", "length", "list", "map", "reject", "rejectattr",
    "reverse", "select", "selectattr",
}  # fmt: skip
"""Filters that do not read the content of a list's items."""
_OF_JINJA = ("_loop_vars", "_block_vars")
_WITHOUT = ("lipsum", "urlize", "pprint", "striptags")

_left: ContextVar[list[int]] = ContextVar("work left to the template that is rendered")
"""A list of one number, which charges change in place; by context, since templates are rendered in several threads."""


class TooMuchWork(jinja2.TemplateRuntimeError):
    """A template that needs too much time or memory."""


def render_template(
    template: str, messages: Sequence[Mapping[str, str]], *, today: str, add_generation_prompt: bool = False,
    marks: Mapping[str, str | list[str]],
) -> str:  # fmt: skip
    """Return the template's text. ``marks`` are the tokenizer's special tokens by their names.

    Raises jinja2.TemplateError for a template that is invalid, refuses the messages, fails, or exceeds its budget.
    """
    budget = _BASE_BUDGET + _BUDGET_PER_CHARACTER * sum(len(text) for message in messages for text in message.values())
    token = _left.set([budget])
    try:
        compiled = _compiled(template, today)
        return compiled.render(
            **marks,
            messages=[dict(message) for message in messages],
            tools=None,
            documents=None,
            add_generation_prompt=add_generation_prompt,
        )
    except jinja2.TemplateError:
        raise
    except RecursionError as error:
        raise TooMuchWork("it is nested too deep") from error
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise jinja2.TemplateRuntimeError(f"it fails with {type(error).__name__}: {str(error)[:200]}") from error
    finally:
        _left.reset(token)


@lru_cache(maxsize=16)
def _compiled(template: str, today: str) -> jinja2.Template:
    if len(template) > _LONGEST_TEMPLATE:
        raise TooMuchWork(f"it has {len(template):,} characters; {_LONGEST_TEMPLATE:,} are allowed")
    environment = _Environment(date.fromisoformat(today))
    tree = _Metering().visit(environment.parse(template))
    return jinja2.Template.from_code(environment, environment.compile(tree), environment.globals)


def _charge(amount: int) -> None:
    left = _left.get()
    left[0] -= amount
    if left[0] < 0:
        raise TooMuchWork("it wants more time or memory than a chat template needs")


def _size(value: Any) -> int:
    """Return the number of characters or items."""
    return len(value) if isinstance(value, str | bytes | list | tuple | dict | range) else 1


def _deep_size(value: Any) -> int:
    """Return the size of a value as a text, at least; counting ends where the budget does."""
    if not isinstance(value, list | tuple | dict):
        return _size(value)
    total, left, waiting = 0, _left.get()[0], [value]
    while waiting and total <= left:
        item = waiting.pop()
        total += 1 + _size(item)
        if isinstance(item, dict):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            waiting += item
    return total


def _formatted(value: Any, *args: Any, **kwargs: Any) -> int:
    text, values = str(value), (*args, *kwargs.values())
    widths = sum(abs(width) for width in values if isinstance(width, int)) if "*" in text else 0
    repeats = text.count("%") + text.count("{")
    return sum(int(digits[:9]) for digits in re.findall(r"\d+", text)) + widths + repeats * sum(map(_deep_size, values))


def _replaced(s: Any, old: Any, new: Any, *_: Any, **__: Any) -> int:
    return (str(s).count(str(old)) + 1) * len(str(new))


def _joined(separator: Any, items: Any) -> int:
    return len(str(separator)) * _size(items) + _deep_size(items)


_COSTS: dict[str, Callable[..., int]] = {
    "batch": lambda value, linecount, *_, **__: int(linecount),
    "center": lambda value, width=80, *_, **__: int(width),
    "expandtabs": lambda text, tabsize=8, **_: text.count("\t") * int(tabsize),
    "format": _formatted,
    "format_map": _formatted,
    "indent": lambda s, width=4, *_, **__: (
        (str(s).count("\n") + 1) * (len(width) if isinstance(width, str) else int(width))
    ),
    "ljust": lambda text, width, *_: int(width),
    "replace": _replaced,
    "rjust": lambda text, width, *_: int(width),
    "slice": lambda value, slices, *_, **__: int(slices),
    "sum": lambda iterable, attribute=None, start=0: (
        _deep_size(iterable) * (1 if isinstance(start, int) else _size(iterable))
    ),
    "translate": lambda text, table: len(text) * _deep_size(table),
    "tojson": lambda value, *_, indent=0, **__: _deep_size(value) * (1 + (indent if isinstance(indent, int) else 8)),
    "wordwrap": lambda s, *_, wrapstring="\n", **__: len(str(s)) * (len(str(wrapstring)) + sum(map(_size, _))),
    "zfill": lambda text, width: int(width),
}
"""Costs that may exceed the sizes of the arguments, computed from these before the work."""


def _charge_call(name: str, values: Sequence[Any], kwargs: Mapping[str, object]) -> None:
    size, work = _size if name in _SHALLOW else _deep_size, 1
    for value in (*values, *kwargs.values()) if kwargs else values:
        if type(value) is int and abs(value) > _LARGEST_ARGUMENT:
            raise TooMuchWork(f"{name} has a number above {_LARGEST_ARGUMENT:,}")
        work += len(value) if type(value) is str else size(value)
    _charge(work)
    if name in _COSTS:
        _charge(_COSTS[name](*values, **kwargs))


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox as transformers configures it, with a cost for all that a template can do."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, today: date) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=[_Generation, loopcontrols])
        for name in _WITHOUT:
            self.filters.pop(name, None)
            self.globals.pop(name, None)
        self.filters["tojson"] = _to_json
        self.filters = {name: _priced(name, function) for name, function in self.filters.items()} | _INNER
        self.filters["join"] = _join
        self.tests = {name: _priced(name, function) for name, function in self.tests.items()}
        functions: dict[str, Any] = {
            "dict": _make_dict,
            "namespace": _Namespace,
            "raise_exception": _raise,
            "range": _range,
            "strftime_now": today.strftime,
        }
        self.globals.update(functions)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - Jinja's signature
        """Call a function of the template, at its cost."""
        name = str(getattr(__obj, "__name__", ""))
        values = args
        method = getattr(__obj, "__wrapped__", __obj)  # the sandbox wraps str.format
        if isinstance(method, BuiltinMethodType) and method.__self__ is not None:
            values = (method.__self__, *args)
            if name == "join" and args and not isinstance(args[0], list | tuple | dict | str):
                args = (list(_metered(None, args[0])),)
                values = (method.__self__, *args)
            if name == "join":
                _charge(_joined(*values))
        _charge_call(name, values, {key: value for key, value in kwargs.items() if key not in _OF_JINJA})
        result = super().call(__context, __obj, *args, **kwargs)
        _charge(_size(result))
        return result

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute a binary operation, at the cost of its result."""
        if operator == "+" and type(left) is str and type(right) is str:
            _charge(len(left) + len(right))
            return left + right
        if isinstance(left, int | float) and isinstance(right, int | float):
            _check_number(operator, left, right)
        elif operator == "*":
            _charge(_size(left) * max(left, 1) if isinstance(left, int) else _size(left) * max(int(right), 1))
            _charge(_size(right) * max(left, 1) if isinstance(left, int) else 0)
        elif operator == "%":
            _charge(_formatted(left, *(right if isinstance(right, tuple) else (right,))))
        else:
            _charge(_size(left) + _size(right))
        return super().call_binop(context, operator, left, right)


def _check_number(operator: str, left: float, right: float) -> None:
    """Raise TooMuchWork for whole numbers of thousands of digits, which a few products make."""
    if not isinstance(left, int) or not isinstance(right, int):
        return
    bits = left.bit_length() * max(right, 1) if operator == "**" else left.bit_length() + right.bit_length()
    if bits > _MOST_BITS:
        raise TooMuchWork("it calculates with numbers of thousands of digits")


def _priced(name: str, function: Any) -> Any:
    """Return the filter or test with its cost; one whose first argument is the context keeps it."""
    num_inner = 1 if getattr(function, "jinja_pass_arg", None) is not None else 0

    @wraps(function)
    def priced(*args: Any, **kwargs: Any) -> Any:
        _charge_call(name, args[num_inner:], kwargs)
        result = function(*args, **kwargs)
        _charge(_size(result))
        return result

    return priced


@jinja2.pass_context
def _metered(_context: Any, items: Iterable[Any]) -> Iterator[Any]:
    left = _left.get()
    for item in items:
        left[0] -= _PER_LOOP
        if left[0] < 0:
            raise TooMuchWork("it wants more time or memory than a chat template needs")
        yield item


@jinja2.pass_context
def _written(_context: Any, value: Any) -> str:
    if type(value) is str:
        _charge(len(value))
        return value
    _charge(_deep_size(value))
    return str(value)


@jinja2.pass_context
def _concatenated(_context: Any, values: list[Any]) -> str:
    _charge(_deep_size(values))
    return "".join(map(str, values))


@jinja2.pass_context
def _paid(_context: Any, value: Any) -> Any:
    _charge(len(value) if type(value) is str else _deep_size(value))
    return value


def _join(value: Any, d: str = "", attribute: str | None = None) -> str:
    items = list(_metered(None, value))
    if attribute is not None:
        items = [item.get(attribute, "") if isinstance(item, dict) else "" for item in items]
    _charge(_joined(d, items))
    return str(d).join(map(str, items))


_INNER = {"_concatenated": _concatenated, "_metered": _metered, "_paid": _paid, "_written": _written}


class _Metering(NodeTransformer):
    """Adds costs that the environment cannot intercept: of loops, texts, comparisons and slices."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - Jinja calls it by the node's name
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "_metered")
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        parts = (nodes.Const(part.data) if isinstance(part, nodes.TemplateData) else part for part in node.nodes)
        node.nodes = [_filtered(part, "_written") for part in parts]
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "_concatenated")

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _filtered(node.expr, "_paid")
        for operand in node.ops:
            operand.expr = _filtered(operand.expr, "_paid")
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(node, "_paid") if isinstance(node.arg, nodes.Slice) else node


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(cast(nodes.Expr, node), name, [], [], None, None, lineno=node.lineno)


class _Generation(Extension):
    """``{% generation %}`` marks what an assistant wrote, for trainers that need it; it writes nothing itself."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own declaration

    def parse(self, parser: Any) -> nodes.Node:
        """Read the block, with names of its own inside."""
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Namespace(Namespace):
    """Jinja's namespace without names that begin with an underscore, which lead out of the sandbox."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *rest = args  # a template may pass a name "self"
        values = dict(*rest, **kwargs)
        for name in values:
            _check_name(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        Namespace.__setitem__(self, name, value)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace cannot hold {name[:40]!r}")


def _make_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)


def _range(*args: int) -> range:
    numbers = range(*args)
    if len(numbers) > _LARGEST_ARGUMENT:
        raise TooMuchWork(f"a range of more than {_LARGEST_ARGUMENT:,}")
    return numbers


def _raise(message: Any) -> None:
    raise jinja2.TemplateError(str(message)[:1000])


def _to_json(value: Any, ensure_ascii: Any = False, indent: Any = None, separators: Any = None, **named: Any) -> str:  # noqa: FBT002 - as templates call it
    """Write JSON without the escapes of HTML, as transformers does."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, **named)
