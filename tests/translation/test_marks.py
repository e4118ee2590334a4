"""Each mark brings its own piece back, once, wherever it stands; everything else is a fault."""

import pytest

from steelyard.translation.marks import BRACKETS, WORDS, MarkFault, MarkStyle, restore
from steelyard.translation.protection import protect

TWO = protect("Use `first` before `second`.")


def test_marks_in_another_order_bring_their_own_pieces():
    # A known fault of other tools: pieces are put back in the order of the source.
    assert restore(TWO, "Vor ⟦2⟧ kommt ⟦1⟧.") == "Vor `second` kommt `first`."


def test_what_looks_like_a_mark_inside_a_piece_is_not_replaced():
    # A known fault of other tools: marks are replaced one after another, also inside pieces put back before.
    protected = protect("`see ⟦B2⟧` and `x`, not ⟦1⟧")
    assert protected.text == "⟦C1⟧ and ⟦C2⟧, not ⟦1⟧"
    assert restore(protected, "⟦C2⟧ y ⟦C1⟧, no ⟦1⟧") == "`x` y `see ⟦B2⟧`, no ⟦1⟧"


def test_a_translated_placeholder_is_a_fault():
    # A known fault of other tools: the word in `__PLACEHOLDER_1__` is translated, and the piece is lost.
    style = MarkStyle("__PLACEHOLDER_", "__", is_word=True)
    protected = protect("Open `x`.", style=style)
    assert protected.text == "Open __PLACEHOLDER_1__."
    assert restore(protected, "Abra __MARCADOR_1__.") == (MarkFault("missing", "__PLACEHOLDER_1__"),)


@pytest.mark.parametrize(
    ("translated", "faults"),
    [
        ("only ⟦1⟧", {("missing", "⟦2⟧")}),
        ("nothing", {("missing", "⟦1⟧"), ("missing", "⟦2⟧")}),
        ("⟦1⟧ ⟦2⟧ ⟦1⟧", {("repeated", "⟦1⟧")}),
        ("⟦1⟧ ⟦2⟧ ⟦3⟧", {("unknown", "⟦3⟧")}),
        ("⟦1⟧ ⟦2⟧ ⟦12⟧", {("unknown", "⟦12⟧")}),
        ("⟦01⟧ ⟦2⟧", {("missing", "⟦1⟧"), ("unknown", "⟦01⟧")}),
        ("⟦1⟧ [2]", {("missing", "⟦2⟧")}),
        ("⟦1⟧ 【2】", {("missing", "⟦2⟧")}),
        ("⟦1⟧ ⟦2]", {("missing", "⟦2⟧"), ("altered", "⟦")}),
        ("⟦1⟧ ⟦2⟧ ⟦", {("altered", "⟦")}),
        ("⟦1⟧ ⟦two⟧", {("missing", "⟦2⟧"), ("altered", "⟦"), ("altered", "⟧")}),
        ("⟦1⟧ ⟦2\u200f⟧", {("missing", "⟦2⟧"), ("altered", "⟦"), ("altered", "⟧")}),
        ("⟦1⟧ ⟦⟦2⟧⟧", {("altered", "⟦"), ("altered", "⟧")}),
    ],
)
def test_a_mark_that_is_not_there_once_is_a_fault(translated, faults):
    found = restore(TWO, translated)
    assert isinstance(found, tuple)
    assert {(fault.kind, fault.mark) for fault in found} >= faults
    assert {fault.kind for fault in found} <= {kind for kind, _ in faults} | {"altered"}


def test_tags_close_what_they_closed_in_any_order_of_the_elements():
    # Without this check ``</b>rojo<b>`` was restored, which shows everything after it in bold.
    tags = protect("a <b>red</b> and <i>green</i> house<br>")
    assert restore(tags, "una casa ⟦3⟧verde⟦4⟧ y ⟦1⟧roja⟦2⟧⟦5⟧") == "una casa <i>verde</i> y <b>roja</b><br>"
    assert restore(tags, "una casa ⟦5⟧⟦3⟧verde ⟦1⟧y roja⟦2⟧⟦4⟧") == "una casa <br><i>verde <b>y roja</b></i>"
    assert restore(tags, "una casa ⟦2⟧roja⟦1⟧ y ⟦3⟧verde⟦4⟧⟦5⟧") == (MarkFault("crossed", "⟦2⟧"),)
    assert restore(tags, "una casa ⟦1⟧roja ⟦3⟧y⟦2⟧ verde⟦4⟧⟦5⟧")[0] == MarkFault("crossed", "⟦2⟧")


BLOCKS = protect("Run:\n\n- a\n\n  ```\n  x\n  ```\n\nThen `y` [so](z.png).")


@pytest.mark.parametrize(
    ("translated", "fault"),
    [
        ("Corre: ⟦1⟧\n\nLuego ⟦2⟧ [así](⟦3⟧).", MarkFault("moved", "⟦1⟧")),
        ("Corre:\n\n- a\n\n⟦1⟧\n\nLuego ⟦2⟧ [así](⟦3⟧).", MarkFault("moved", "⟦1⟧")),
        ("Corre:\n\n- a\n\n  ⟦1⟧ luego ⟦2⟧ [así](⟦3⟧).", MarkFault("moved", "⟦1⟧")),
        ("运行：\n\n- a\n\n  ⟦1⟧\n\n然后⟦2⟧[这](⟦3⟧）。", MarkFault("moved", "⟦3⟧")),
        ("运行：\n\n- a\n\n  ⟦1⟧\n\n然后⟦2⟧[这]（⟦3⟧)。", MarkFault("moved", "⟦3⟧")),
        ("Corre:\n\n- a\n\n  ⟦1⟧\n\nLuego `⟦2⟧` [así](⟦3⟧).", MarkFault("added", "`")),
        ("Corre:\n\n- a\n\n  ⟦1⟧\n\nLuego $⟦2⟧$ [así](⟦3⟧).", MarkFault("added", "$")),
        ("Corre:\n\n- a\n\n  ⟦1⟧\n\nL&#39;&amp; ⟦2⟧ [así](⟦3⟧).", MarkFault("added", "&#39;")),
        ("<p>Corre:\n\n- a\n\n  ⟦1⟧\n\nLuego ⟦2⟧ [así](⟦3⟧).", MarkFault("added", "<p>")),
    ],
)
def test_blocks_of_code_keep_their_lines_and_no_sign_of_code_is_added(translated, fault):
    # Without this check "Corre: ```" and ``]（z.png)`` were restored: neither a block of code nor a link.
    restored = restore(BLOCKS, translated)
    assert isinstance(restored, tuple)
    assert restored[0] == fault
    right = "运行：\n\n- a\n\n  ⟦1⟧\n\n[这](⟦3⟧)，然后⟦2⟧。"
    assert restore(BLOCKS, right) == "运行：\n\n- a\n\n  ```\n  x\n  ```\n\n[这](z.png)，然后`y`。"


def test_code_that_nothing_closes_stays_at_the_end_and_blocks_in_order():
    open_code = protect("`a` first\n\n~~~\nx")
    assert restore(open_code, "⟦2⟧\n\n⟦1⟧ zuerst") == (MarkFault("moved", "⟦2⟧"),)
    two = protect("~~~\nx\n~~~\nor\n~~~\ny\n~~~")
    assert restore(two, "⟦2⟧\noder\n⟦1⟧")[0] == MarkFault("moved", "⟦1⟧")


def test_tags_that_the_source_crosses_may_stay_crossed():
    crossed = protect("</b>a <i>b <b>c</i> d")
    assert restore(crossed, crossed.text) == "</b>a <i>b <b>c</i> d"


@pytest.mark.parametrize("translated", ["⟦ 1 ⟧ ⟦2⟧", "⟦١⟧ ⟦٢⟧", "⟦१⟧ ⟦२⟧", "⟦１⟧ ⟦\u00a02⟧"])
def test_blanks_and_digits_of_other_scripts_inside_brackets_are_read(translated):
    assert restore(TWO, translated) == "`first` `second`"


def test_a_bracket_of_the_text_does_not_close_a_mark_that_lost_its_own():
    protected = protect("a `x` ⟧ b")
    assert protected.text == "a ⟦1⟧ ⟧ b"
    assert restore(protected, "a ⟦1⟧ ⟧ b") == "a `x` ⟧ b"
    assert restore(protected, "a ⟦1 ⟧ b") == (MarkFault("altered", "⟧"),)


def test_signs_of_direction_beside_marks_are_kept_and_none_is_added():
    assert restore(TWO, "\u200f⟦2⟧\u200f ثم ⟦1⟧") == "\u200f`second`\u200f ثم `first`"


@pytest.mark.parametrize(
    ("translated", "kinds"),
    [
        ("XQ1Z XQ 2 Z", {"missing", "altered"}),
        ("XQ1Z XQ2", {"missing", "altered"}),
        ("XQ1Z XQ-2-Z", {"missing", "altered"}),
        ("XQ1Z КХ2З", {"missing"}),
        ("XQ1Z XQ2Z xq2z", {"repeated"}),
        ("XQ1Z XQ2Z XQ20Z", {"unknown", "altered"}),
        ("XQ1Z ＸＱ２Ｚ", {"missing"}),
    ],
)
def test_an_altered_word_is_a_fault(translated, kinds):
    protected = protect("Use `first` before `second`.", style=WORDS)
    assert protected.text == "Use XQ1Z before XQ2Z."
    found = restore(protected, translated)
    assert isinstance(found, tuple)
    assert {fault.kind for fault in found} == kinds


def test_a_word_in_other_letters_or_with_an_ending_is_read():
    protected = protect("Use `first` before `second`.", style=WORDS)
    assert restore(protected, "xq2z'den önce Xq1zı kullan") == "`second`'den önce `first`ı kullan"


def test_the_blank_beside_a_word_goes_where_the_text_had_none():
    tags = protect("a <b>red</b>house", style=WORDS)
    assert tags.text == "a XQ1Z red XQ2Z house"
    assert restore(tags, "una casa XQ1Z roja XQ2Z") == "una casa <b>roja</b>"
    chinese = protect("用`x`函数", style=WORDS)
    assert restore(chinese, "use XQ1Z function") == "use `x` function"
    assert restore(chinese, "用 XQ1Z 函數") == "用`x`函數"


def test_the_two_styles_have_marks_of_their_own():
    assert [BRACKETS.mark(12), WORDS.mark(12)] == ["⟦12⟧", "XQ12Z"]
    assert restore(protect("no code"), "sin código") == "sin código"
    assert restore(protect("no code"), "sin código ⟦1⟧") == (
        MarkFault("unknown", "⟦1⟧"), MarkFault("altered", "⟦"), MarkFault("altered", "⟧")
    )  # fmt: skip
