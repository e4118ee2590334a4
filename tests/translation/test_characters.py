"""Signs that are not seen, broken characters and frames: found in translations that came, taken out of new ones."""

import pytest

from steelyard.translation.characters import check_characters, without_unseen
from steelyard.translation.passages import Passage, PassagePair
from steelyard.translation.wording import check_frame, check_leftovers

SOURCE = "The old town lies at the river, and `x.py` is in it."
TARGET = "El pueblo viejo queda junto al río, y `x.py` está en él."


def pair(target, source=SOURCE, *, language="es"):
    return PassagePair(Passage("prompt", source, "en"), Passage("prompt", target, language))


@pytest.mark.parametrize(
    ("target", "language", "is_found"),
    [
        (TARGET, "es", False),
        (f"\ufeff{TARGET}", "es", True),
        (TARGET.replace("`x.py`", "\u200e`x.py`\u200e"), "es", True),
        (TARGET.replace("pueblo", "pue\u00adblo"), "es", True),
        (f"{TARGET}\0", "es", True),
        (TARGET.replace("í", "\ufffd"), "es", True),
        (TARGET.encode().decode("latin-1"), "es", True),
        (TARGET.upper(), "es", True),
        (TARGET.replace(" ", "\u00a0"), "es", True),
        (TARGET.replace("río, y", "río,\u00a0y"), "es", False),
        ("\u202bالمدينة القديمة عند النهر.\u202c", "ar", False),
        ("المدينة القديمة \u200fعند النهر.", "ar", False),
        ("\u202bالمدينة القديمة عند النهر.", "ar", True),
        ("\u202eالمدينة القديمة عند النهر.\u202c", "ar", True),
        ("شهر قدیمی کنار رودخانه می\u200cباشد.", "fa", False),
        ("पुराना शहर क\u094d\u200dष नदी के किनारे है।", "hi", False),
        ("เมืองเก่า\u200bอยู่ริมแม่น้ำ", "th", False),
        ("旧城\u200b在河边。", "zh", True),
    ],
)
def test_characters_that_nobody_wrote_are_found_where_the_language_has_no_use_for_them(target, language, is_found):
    assert bool(list(check_characters(pair(target, language=language)))) is is_found


def test_an_excerpt_shows_what_is_not_seen():
    (found,) = check_characters(pair(TARGET.replace(" viejo", "\u202e viejo")))
    assert found.after.startswith("El pueblo⟨U+202E⟩ viejo")


def test_characters_of_the_source_are_no_finding():
    for source in (f"\ufeff{SOURCE}", SOURCE.replace("town", "to\u00adwn"), f"{SOURCE}\0"):
        found = list(check_characters(pair(source.replace("The old", "El viejo"), source)))
        assert not found
    assert not list(check_characters(pair("¡VETE A CASA, VIEJO AMIGO MÍO!", "GO HOME, OLD PAL")))


def test_unseen_signs_leave_and_those_of_the_source_and_the_language_stay():
    assert without_unseen("a \u200b⟦\u200e1⟧\ufeff", "a", "es") == "a ⟦1⟧"
    assert without_unseen("a\u200bb\u00ad", "a\u200bb", "es") == "a\u200bb"
    assert without_unseen("un\u200bpueblo\u200bviejo y", "a", "es") == "un pueblo viejo y", "in place of the blanks"
    assert without_unseen("旧城\u200b在\u200b河边", "a", "zh") == "旧城在河边"
    assert without_unseen("\u202bא\u202c\u202e", "a", "he") == "\u202bא\u202c"
    assert without_unseen("\u2067א", "a", "he") == "א", "what no sign ends would turn the rest of a page over"
    assert without_unseen("می\u200cباشد", "is", "fa") == "می\u200cباشد"


FRAMES = (
    '"{}"', "“{}”", "«{}»", "「{}」", "**{}**", "*{}*", "`{}`", "```\n{}\n```", "({})", '{{"translation": "{}"}}',
    "<translation>{}</translation>", "Spanish: {}", "Español:\n{}", "**Spanish:** {}", "Usuario: {}", "User: {}",
)  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_that_the_source_has_not_is_found(frame):
    plain = TARGET.replace("`", "")
    framed = frame.format(plain)
    assert list(check_frame(pair(framed, SOURCE.replace("`", "")))) or list(check_leftovers(pair(framed)))
    same = frame.format(SOURCE.replace("`", ""))
    assert not list(check_frame(pair(framed, same)))
    assert not list(check_leftovers(pair(framed, same)))


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ("«Hola», dijo el hombre viejo, y después «adiós»", "Hello, said the old man, and then goodbye."),
        ("**Uno** y dos y tres y cuatro y **cinco**", "One and two and three and four and five"),
        ("`a` y el resto del texto con otro nombre `b`", "The name and the rest of the text with another name"),
        ("«El rey león»", "The Lion King"),
        ("Nota: el pueblo viejo queda junto al río.", "Note: the old town lies at the river."),
        ("En otras palabras: el pueblo viejo queda junto al río.", "In other words, the old town lies at the river."),
        ("Español: una lengua de muchos países.", "Spanish: a language of many countries."),
    ],
)
def test_signs_at_both_ends_that_do_not_belong_together_are_no_frame(target, source):
    assert not list(check_frame(pair(target, source)))
