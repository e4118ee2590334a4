"""A chat template is foreign code: it writes what it would under transformers, and cannot run or grow without end."""

import threading
import time
from itertools import pairwise

import jinja2
import pytest
from transformers.utils.chat_template_utils import render_jinja_template

import tiny
from each_value import each
from published_tokenizers import SHAPES
from steelyard.core.errors import ModelError
from steelyard.networks.conversation import Rendering, encode
from steelyard.networks.templates import TooMuchWork, render_template
from strategies import case

TURNS = [
    {"role": "system", "content": ' Be <b>brief</b> & "kind".\n'},
    {"role": "user", "content": "你好 { a: [1] } שלום"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nyes\n"},
]
MARKS = {"bos_token": "<s>", "eos_token": "</s>"}
ORDINARY = {
    "chatml": tiny.WITH_BOS,
    **{name: shape.template for name, shape in SHAPES.items()},
    "filters": "{% for m in messages %}"
    "{{ m.content | trim | upper | replace('B', 'x') }}{{ m | tojson(indent=2) }}"
    "{{ m.content | indent(width=2, first=true) }}"
    "{{ m.content.split('\\n') | join('|') }}{{ messages | map(attribute='role') | list }}{% endfor %}",
    "loops": "{% for m in messages %}{% if loop.first %}[{% endif %}"
    "{{ loop.index0 }}/{{ loop.length }}{{ loop.nextitem is "
    "defined }}{% if m.role == 'user' %}{% continue %}{% endif %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "macros": "{% macro say(x, y='-') %}{{ y ~ x ~ 1.5 }}{% endmacro %}{% for m in messages %}"
    "{{ say(m.role) }}{% endfor %}"
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 2 * 3 %}{% endfor %}"
    "{{ ns.n }}{{ 2 ** 5 }}",
    "generation": "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}"
    "{{ m.content }}{% endgeneration %}"
    "{% else %}"
    "{{ m.content[1:5] }}{{ 'x' * 3 }}{{ '%s|%d' % (m.role, 3) }}{{ '{:>9}'.format(m.role) }}{% endif %}{% endfor %}",
    "conditions": "{% if tools %}t{% endif %}"
    "{% if messages[0].role in ['system', 'tool'] and 'Be' in messages[0].content %}"
    "{{ messages[0].content.strip() }}{% endif %}{{ messages[1:] | length }}{{ undefined_name }}",
    "blocks": "{% set x %}a{{ messages[0].role }}{% endset %}{{ x }}{% filter upper %}b{{ x }}{% endfilter %}"
    "{% raw %}{{ no }}{% endraw %}{# a remark #}{{ add_generation_prompt }}{{ bos_token }}",
    "sorted": "{{ {'b': 1, 'a': [2, none, true]} | dictsort }}{{ {'b': 1} | items | list }}"
    "{{ [3, 1] | sort | first }}"
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ dict(a=1) | string }}",
}


@each("name", ORDINARY)
@each("is_asking", [True, False])
def test_a_template_writes_what_it_writes_under_transformers(name, is_asking):
    expected = render_jinja_template([TURNS], chat_template=ORDINARY[name], add_generation_prompt=is_asking, **MARKS)[
        0
    ][0]
    found = render_template(ORDINARY[name], TURNS, today="2024-07-26", add_generation_prompt=is_asking, marks=MARKS)
    assert found == expected


def times(text, number=100):
    return "{% for i in range(" + str(number) + ") %}" + text + "{% endfor %}"


DOUBLED = "{% set ns = namespace(x=X, y=X) %}"
LETTERS = list(pairwise("abcdefghijklmnopqrstuvwxy"))
LONG = "{% set a = 'a' * 100000 %}"
HOSTILE = {
    "a range": "{% for i in range(10**12) %}x{% endfor %}",
    "ranges": times(times("", 100_000), 100_000),
    "ranges without a text": times(times("{% set x = loop.index %}", 100_000), 100_000),
    "a product of a text": "{{ 'a' * 10**12 }}",
    "a product with a text": "{{ 10**12 * 'a' }}",
    "a product of a list": "{% set x = [1] * 10**12 %}",
    "a power": "{{ 10 ** (10 ** 10) }}",
    "squares": DOUBLED.replace("X", "3") + times("{% set ns.x = ns.x * ns.x %}"),
    "texts doubled": DOUBLED.replace("X", "'ab'") + times("{% set ns.x = ns.x ~ ns.x %}"),
    "texts added": DOUBLED.replace("X", "'ab'") + times("{% set ns.x = ns.x + ns.x %}"),
    "lists doubled": DOUBLED.replace("X", "[1]") + times("{% set ns.x = ns.x + ns.x %}"),
    "lists in lists written": DOUBLED.replace("X", "[1]") + times("{% set ns.x = [ns.x, ns.x] %}", 60) + "{{ ns.x }}",
    "lists in lists as JSON": DOUBLED.replace("X", "[1]") + times("{% set ns.x = [ns.x, ns.x] %}", 60)
    + "{{ ns.x | tojson }}",
    "lists in lists compared": DOUBLED.replace("X", "[1]")
    + times("{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}", 60) + "{{ ns.x == ns.y }}",
    "a width": "{{ 'a' | center(10**10) }}",
    "a width of a method": "{{ 'a'.ljust(10**10) }}",
    "zeros": "{{ 'a'.zfill(99999999) }}",
    "a width in a format": "{{ '%10000000000d' % 1 }}",
    "a width beside a format": "{{ '%*d' % (10000000000, 1) }}",
    "a width in braces": "{{ '{:>10000000000}'.format(1) }}",
    "a width in a named brace": "{{ '{a:>10000000000}'.format_map({'a': 1}) }}",
    "a replacement": LONG + "{{ a.replace('a', a) }}",
    "a replacement by a filter": LONG + "{{ a | replace('a', a) }}",
    "a separator": LONG + "{{ a.join(range(100000) | map('string')) }}",
    "a separator of a filter": LONG + "{{ range(100000) | join(a) }}",
    "an indentation": "{% set a = '\\n' * 100000 %}{{ a | indent(100000, true, true) }}",
    "a translation": LONG + "{{ a.translate({97: a}) }}",
    "tabs": "{{ ('\\t' * 1000).expandtabs(10**9) }}",
    "bytes": "{{ (5).to_bytes(10**10) }}",
    "rounding": "{{ 5 | round(-1000000000) }}",
    "batches": "{{ [1] | batch(1000000000, 'x') | list }}",
    "filters over a range": "{{ range(100000) | map('center', 99999) | list }}",
    "comparisons": LONG + "{% set b = 'a' * 100000 %}" + times("{% if a == b %}{% endif %}", 100_000),
    "slices": LONG + times("{% set b = a[1:] %}", 100_000),
    "copies": LONG + times("{% set b = a.upper() %}", 100_000),
    "the template's own text": times("x" * 100_000, 100_000),
    "membership": "{% set x = range(100000) | list %}" + times("{% if i in x %}{% endif %}", 100_000),
    "macros that call two": "{% macro a() %}x{% endmacro %}"
    + "".join(f"{{% macro {one}() %}}{{{{ {below}() ~ {below}() }}}}{{% endmacro %}}" for below, one in LETTERS)
    + "{{ y() }}",
    "a macro that calls itself": "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
    "a loop that calls itself": "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "brackets": "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
    "its length": "x" * 600_000,
}  # fmt: skip


@each("name", HOSTILE)
def test_a_template_that_wants_too_much_is_stopped(name):
    before = time.thread_time()
    with pytest.raises(TooMuchWork):
        render_template(HOSTILE[name], TURNS, today="2024-07-26", marks=MARKS)
    assert time.thread_time() - before < 100  # by far: what is unbounded takes hours, or all memory


@pytest.mark.parametrize(
    "template",
    ["{{ ''.__class__.__mro__ }}", "{{ messages.append(1) }}", "{% set ns = namespace() %}{% set ns._x = 1 %}",
     "{{ namespace(__init__=1) }}", "{{ lipsum(n=10) }}", "{% include '/etc/passwd' %}",
     "{{ 1 / 0 }}", "{{ 'a' + 1 }}",
     "{% for", "{{ x.y.z }}", "{{ 'a' | urlize }}"],
)  # fmt: skip
def test_a_template_that_leaves_the_sandbox_or_is_broken_fails_as_a_template(template):
    with pytest.raises(jinja2.TemplateError):
        render_template(template, TURNS, today="2024-07-26", marks=MARKS)


def test_a_template_is_stopped_in_any_thread_and_beside_others():
    found = []

    def stopped():
        with pytest.raises(TooMuchWork):
            render_template(HOSTILE["texts doubled"], TURNS, today="2024-07-26", marks=MARKS)
        found.append(render_template(tiny.CHATML, TURNS, today="2024-07-26", marks=MARKS))

    threads = [threading.Thread(target=stopped) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


def test_a_conversation_of_hundreds_of_turns_is_no_trouble():
    turns = [{"role": ("user", "assistant")[place % 2], "content": "word " * 20} for place in range(300)]
    quadratic = (
        "{% for m in messages %}{% for n in messages %}{% if n.role == m.role %}{% endif %}{% endfor %}{% endfor %}"
    )
    assert render_template(quadratic, turns, today="2024-07-26", marks=MARKS) == ""


def test_a_scorer_says_so():
    rendering = Rendering(template=HOSTILE["a product of a text"])
    one = case("p", "a")
    with pytest.raises(ModelError, match=r"refuses this conversation .it wants more time or memory"):
        encode(tiny.tokenizer(), rendering, one, one.responses[0])
