"""Lines of programs and lines of prose that look like them."""

import pytest

from steelyard.translation.program_lines import code_lines, is_program, program_lines


@pytest.mark.parametrize(
    "line",
    [
        "Profit = Revenue - Costs",
        "BMI = weight (kg) / height (m)^2",
        "Total = 5 apples + 3 pears",
        "English = of England",
        "Horse(Tamed)",
        "Apple(s)",
        "Noun(Kittens), Adverb(often), Verb(run)",
        "for example (see below):",
        "if needed (optional):",
        "while he was away, the cat slept (as always):",
        "with regards (Ann):",
        "class Monday: maths",
        "let us go there now; it is late",
        "public transport is free; use it",
        "function (noun): what a thing does",
        "return ticket (2nd class)",
        "from London import duties rise",
        "$ amounts are in dollars",
        "SELECT your meal FROM the menu",
        "UPDATE the shop is closed",
        "He left (at last);",
        "... and then he left",
        ">>> click here <<<",
        '   "Save energy, save money"',
        '"name": "the name of the person",',
        "f(n) = n / 2, if n is even.",
    ],
)
def test_prose_that_looks_like_a_program_is_prose(line):
    assert program_lines([line]) == [False]


@pytest.mark.parametrize(
    "line",
    [
        "x = f(1)",
        "total += prices[i]",
        "print(total)",
        "for i in range(10):",
        "while x < 5:",
        "except ValueError:",
        "return x + 1",
        "class Foo(Bar):",
        "public static void main(String[] args) {",
        "let mut v = Vec::new();",
        "const a = b => b + 1;",
        "if (level < 0) return false;",
        "#include<stdio.h>",
        "using namespace std;",
        "cout << x << endl;",
        "fmt.Println(f(g(x), h(y)))",
        "INSERT INTO t VALUES (1, 2);",
        "SELECT COUNT(a), b FROM t WHERE c = 1",
        "$ git status",
        ">>> f(1)",
        'raise ValueError("no")',
        "    at run (main.js:3:14)",
        "},",
    ],
)
def test_lines_of_programs_are_code(line):
    assert program_lines([line]) == [True]


def test_a_line_that_may_be_prose_is_code_beside_code():
    assert program_lines(["total = price", "print(total)"]) == [True, True]
    assert code_lines(["@cached", "def f(x):", "", "cost = price"]) == [True, True, False, False]


def test_what_a_session_prints_is_code_up_to_a_blank_line():
    assert code_lines([">>> f(1)", "the result", "", "the result"]) == [True, True, False, False]


@pytest.mark.parametrize(
    "text",
    [
        'from typing import List\n\n\ndef f(x: int) -> int:\n    """ اكتب دالة\n    >>> f(1)\n    """\n',
        "/*\nCheck if two numbers are near.\n*/\n#include<stdio.h>\nbool near(vector<float> numbers){\n",
        "import java.util.*;\n\nclass Solution {\n    /**\n    Check it.\n     */\n    public boolean f(int x) {\n",
        'import (\n    "math"\n)\n\n// Check it.\nfunc F(x int) bool {\n',
        "    balance = 0\n\n    for op in operations:\n        balance += op\n    return False\n",
    ],
)
def test_a_program_without_a_fence_is_one_in_any_language(text):
    assert is_program(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "x = 1", "Use this:\n\nprint(x)", "print(x)\n\nThis prints x.", "```\nprint(x)\nprint(y)\n```",
        "- First, import the data.\n- Then return it.", "  An indented poem\n  of two lines }",
        "# Title\n\nWords (of a kind)",
    ],
)  # fmt: skip
def test_words_around_a_program_make_it_an_answer(text):
    assert not is_program(text)
