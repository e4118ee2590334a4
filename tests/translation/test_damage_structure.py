"""Damage of form: code, lists, tables, options, marks of templates, and the order of responses."""

from each_value import each
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.translation.bench_lengths import LengthLimits
from steelyard.translation.damage import find_damage

NO_BENCH = LengthLimits(pairs={})
CODE = "Use this:\n\n```python\ndef add(a, b):\n    # add both\n    print('done')\n    return a + b\n```"
GERMAN = "Nutze das:\n\n```python\ndef add(a, b):\n    # beide addieren\n    print('fertig')\n    return a + b\n```"


def case(text: str, language: str, *answers: str) -> Case:
    responses = tuple(Response(id=f"r{number}", text=answer) for number, answer in enumerate(answers, start=1))
    return Case(
        prompt=Prompt(id="p", messages=(Message(role="user", content=text),), language=language), responses=responses
    )


def findings(source: Case, target: Case):
    return find_damage(source, target, limits=NO_BENCH, languages=None)


def kinds(source: str, target: str, language: str = "de"):
    return {finding.kind for finding in findings(case(source, "en"), case(target, language))}


def test_comments_and_string_literals_of_code_may_be_translated():
    assert kinds(CODE, GERMAN) == set()


@each(
    "change",
    [
        ("a + b", "a - b"),
        ("    return", "return"),
        ("add(a, b)", "addiere(a, b)"),
        ("(a, b)", "（a, b）"),
        ("def ", "def  "),
        ("'fertig')", "'fertig'), x"),
    ],
)
def test_changed_code_is_found(change):
    assert kinds(CODE, GERMAN.replace(*change)) == {"code"}


def test_code_within_lines_and_unfenced_programs_have_to_stay():
    assert kinds("Call `add(a, b)` first.", "Rufe zuerst `add(a, b)` auf.") == set()
    assert kinds("Call `add(a, b)` first.", "Rufe zuerst `addiere(a, b)` auf.") == {"code"}
    program = 'def add(a, b):\n    """Adds both numbers."""\n    return a + b'
    german = program.replace("Adds both numbers.", "Addiert beide Zahlen.")
    assert kinds(program, german) == set()
    assert kinds(program, german.replace("a + b", "a * b")) == {"code"}


@each(
    ("source", "target"),
    [
        ("````md\n```sh\nls\n```\n````\n\nThanks a lot.", "````md\n```sh\nls\n```\n````\n\nVielen Dank."),
        ("Use ``a`b`` and then `x` today.", "Nutze heute ``a`b`` und dann `x`."),
        ("Use ``loud words here for `x` now.", "Nutze jetzt ``laute Worte hier für `x`."),
        ("```x = 1``` is short.\n\nMore of it follows.", "```x = 1``` ist kurz.\n\nMehr davon folgt."),
        ("f(n) = n / 2, if n is even.", "f(n) = n / 2, falls n gerade ist."),
        ("let us go home; it is (very) late", "gehen wir heim; es ist (sehr) spät"),
        ("f(x), g(x) and others are sums (see above)", "f(x), g(x) und andere sind Summen (siehe oben)"),
    ],
)
def test_prose_beside_code_may_be_translated(source, target):
    assert kinds(source, target) == set()


LIST = "Buy:\n\n1. Milk\n2. Bread\n3. Salt"


@each(
    ("language", "text", "expected"),
    [
        ("de", "Kaufe:\n\n1. Milch\n2. Brot\n3. Salz", set()),
        ("zh", "购买：\n\n1、牛奶\n2、面包\n3、盐", set()),
        ("ar", "اشتر:\n\n١. حليب\n٢. خبز\n٣. ملح", set()),
        ("de", "Kaufe:\n\n1. Milch\n2. Brot", {"structure"}),
        ("zh", "购买： 牛奶、面包、盐", {"structure"}),
        ("he", "קנה:\n1. חלב 2. לחם\n3. מלח", {"structure"}),
    ],
)
def test_list_items_have_to_stay(language, text, expected):
    assert kinds(LIST, text, language) == expected


@each(
    ("source", "text"),
    [
        ("# Plan\n\nWe go.", "Plan\n\nWir gehen."),
        ("| a | b |\n|---|---|\n| one | two |", "| a | b |\n|---|---|\n| eins zwei |"),
        ("First we go there.\n\nThen we rest here.", "Erst gehen wir dorthin. Dann ruhen wir hier."),
        ("We go.\nWe run.\nWe sit.\nWe rest.", "Wir gehen. Wir rennen. Wir sitzen. Wir ruhen."),
    ],
)
def test_lost_headings_cells_paragraphs_and_lines_are_found(source, text):
    assert "structure" in kinds(source, text)


def test_text_that_is_wrapped_at_another_place_is_no_damage():
    source = "The bridge is old and\nit carries people."
    assert kinds(source, "Die Brücke ist alt und sie trägt Menschen.") == set()


def test_a_paragraph_that_is_wrapped_may_be_one_line_but_lines_of_their_own_may_not():
    rest = "leads over the wide river and that carries\nall people of the town to the market each day."
    german = "führt, und die jeden Tag alle Menschen der Stadt zum Markt trägt."
    assert (
        kinds(f"You see the old bridge of stone that today\n{rest}", f"Du siehst die alte Brücke, die heute {german}")
        == set()
    )
    lines = "The old bridge of stone leads over the wide river.\n" * 4
    assert "structure" in kinds(lines, "Die alte Brücke aus Stein führt über den breiten Fluss. " * 4)


def test_a_line_of_code_whose_indentation_alone_changed_is_shown_with_it():
    program = "def add(a, b):\n    c = sum([a, b])\n    return c"
    texts = case(program, "en"), case(program.replace("    c =", "c ="), "de")
    (damage,) = [each for each in findings(*texts) if each.kind == "code"]
    assert (damage.before, damage.after) == ("····c = sum([a, b])", "c = sum([a, b])")


@each(
    ("source", "text", "language"),
    [
        ("Which?\nA) Dog\nB) Cat", "Что?\nА) Собака\nБ) Кошка", "ru"),
        ("Which?\nA) Dog\nB) Cat", "哪个？\n甲) 狗\n乙) 猫", "zh"),
        ("Which?\nA) Dog\nB) Cat", "أيهما؟\nأ) كلب\nب) قطة", "ar"),
        ("My verdict is [[B]].", "Mein Urteil lautet [[C]].", "de"),
        ("The answer is B.", "答案是乙。", "zh"),
        ("A) is larger than the other.", "B) הוא הגדול מביניהם.", "he"),
    ],
)
def test_changed_letters_of_options_and_verdicts_are_found(source, text, language):
    assert "option_letter" in kinds(source, text, language)


@each(
    ("source", "text", "language"),
    [
        ("Which?\nA) Dog\nB) Cat", "哪个？\nA）狗\nB）猫", "zh"),
        ("Which?\nA. Dog\nB. Cat", "Что?\nA. Собака\nB. Кошка", "ru"),
        ("My verdict is [[B]].", "我的结论是[[B]]。", "zh"),
        ("The answer is B.", "答案是B。", "zh"),
        ("A) is larger than the other.", "A) الأول أكبر من الآخر.", "ar"),
        ("D. Miller wrote it.", "Д. Миллер написал это.", "ru"),
    ],
)
def test_letters_that_stay_are_right(source, text, language):
    assert "option_letter" not in kinds(source, text, language)


@each(
    "text",
    [
        "Der Fluss ist lang.<|im_end|>",
        "[INST] Der Fluss ist lang. [/INST]",
        "Here is the translation:\n\nDer Fluss ist lang.",
        "Sure! Here is the German translation: Der Fluss ist lang.",
        "Translation: Der Fluss ist lang.",
        "Übersetzung: Der Fluss ist lang.",
        "**Übersetzung:** Der Fluss ist lang.",
        "I'm sorry, but I can't translate this.",
        "Es tut mir leid, aber ich kann das nicht übersetzen.",
    ],
)
def test_leftovers_of_a_translator_are_found(text):
    assert "leftover" in kinds("The river is long.", text)


@each(
    ("text", "language"),
    [
        ("以下是翻译：这条河很长。", "zh"),
        ("翻訳：この川は長いです。", "ja"),
        ("번역: 이 강은 길다.", "ko"),
        ("Перевод: Река длинная.", "ru"),
        ("الترجمة: النهر طويل.", "ar"),
        ("תרגום: הנהר ארוך.", "he"),
        ("अनुवाद: नदी लंबी है।", "hi"),
        ("Traducción: El río es largo.", "es"),
        ("Íme a fordítás:\n\nA folyó hosszú.", "hu"),
        ("यह रहा अनुवाद:\n\nनदी लंबी है।", "hi"),
        ("以下が翻訳です：\n\nこの川は長いです。", "ja"),
        ("Ακολουθεί η μετάφραση:\n\nΤο ποτάμι είναι μακρύ.", "el"),
        ("Hii hapa tafsiri:\n\nMto ni mrefu.", "sw"),
        ("இதோ மொழிபெயர்ப்பு:\n\nஆறு நீளமானது.", "ta"),
    ],
)  # fmt: skip
def test_openings_of_translators_are_found_in_many_languages(text, language):
    assert "leftover" in kinds("The river is long.", text, language)


def test_a_source_that_speaks_of_a_translation_may_be_translated_so():
    assert "leftover" not in kinds("Translation: the river is long.", "Übersetzung: Der Fluss ist lang.")
    assert "leftover" not in kinds("I'm sorry, I can't help with that.", "Es tut mir leid, ich kann nicht helfen.")


@each(
    ("text", "language"),
    [
        ("Sajnálom, ezt a szöveget nem tudom lefordítani.", "hu"),
        ("Désolé, je ne peux pas traduire ce texte.", "fr"),
        ("Valitettavasti en voi kääntää tätä tekstiä.", "fi"),
        ("Przykro mi, ale nie mogę przetłumaczyć tego tekstu.", "pl"),
        ("Λυπάμαι, δεν μπορώ να μεταφράσω αυτό το κείμενο.", "el"),
        ("Вибачте, я не можу перекласти цей текст.", "uk"),
        ("Samahani, siwezi kutafsiri maandishi haya.", "sw"),
        ("மன்னிக்கவும், இந்த உரையை மொழிபெயர்க்க முடியாது.", "ta"),
    ],
)
def test_a_refusal_in_place_of_a_translation_is_found_also_where_the_source_declines_something_else(text, language):
    assert "leftover" in kinds("The river is long.", text, language)
    assert "leftover" in kinds("I can't help you with this river.", text, language)


@each(
    ("source", "text", "language"),
    [
        ("Sorry, I cannot do that.", "Lo siento, no puedo hacerlo.", "es"),
        ("I apologize, but I can't help with this.", "很抱歉，我无法提供帮助。", "zh"),
        ("Unfortunately, I can't provide that.", "申し訳ありませんが、それは提供できません。", "ja"),
        ("I won't write this.", "Es tut mir leid, aber ich kann das nicht schreiben.", "de"),
    ],
)
def test_a_source_that_declines_is_translated_so(source, text, language):
    assert "leftover" not in kinds(source, text, language)


def test_an_answer_that_declines_and_one_that_does_not_have_changed_places():
    source = case("Write it.", "en", "I can't help with that. It is a crime.", "Dear Grandma, send me your password.")
    answers = ("Chère mamie, envoie-moi ton mot de passe.", "Je ne peux pas vous aider à cela. C'est un délit.")
    swapped, right = (findings(source, case("Écris-le.", "fr", *each)) for each in (answers, answers[::-1]))
    assert "swapped_responses" in {finding.kind for finding in swapped}
    assert not right


FIRST = "Berlin has 3 million people and the Spree."
SECOND = "Madrid lies on the Manzanares at 657 m."


def test_swapped_responses_are_found_by_names_and_numbers():
    german = ("Berlin hat 3 Millionen Einwohner und die Spree.", "Madrid liegt am Manzanares auf 657 m.")
    source = case("Tell me about a city.", "en", FIRST, SECOND)
    right = findings(source, case("Erzähl von einer Stadt.", "de", *german))
    swapped = findings(source, case("Erzähl von einer Stadt.", "de", *reversed(german)))
    assert [each.kind for each in right] == []
    assert [(each.kind, each.place, each.before) for each in swapped if each.place == "responses"] == [
        ("swapped_responses", "responses", "response r1, response r2")
    ]


def test_swapped_programs_are_found_though_they_differ_in_one_line():
    first, second = "    a = 1\n    return a + b", "    a = 1\n    return a - b"
    found = findings(case("Write it.", "en", first, second), case("Schreib es.", "de", second, first))
    assert "swapped_responses" in {each.kind for each in found}


def test_swapped_programs_of_equal_lines_in_another_order_are_found():
    first, second = (
        "    if up:\n        x = ceil(y)\n    else:\n        x = floor(y)",
        "    if up:\n        x = floor(y)\n",
    )
    second += "    else:\n        x = ceil(y)"
    found = findings(case("Write it.", "en", first, second), case("Schreib es.", "de", second, first))
    assert [each.kind for each in found] == ["swapped_responses"]
    assert findings(case("Write it.", "en", first, second), case("Schreib es.", "de", first, second)) == ()


def test_short_responses_without_names_are_not_called_swapped():
    found = findings(
        case("Why?", "en", "He slept.", "He was ill."), case("Warum?", "de", "Er war krank.", "Er schlief.")
    )
    assert found == ()


def test_responses_that_became_equal_are_found():
    source = case("Why?", "en", "He slept well.", "He slept badly.")
    found = findings(source, case("Warum?", "de", "Er schlief gut.", "Er schlief gut."))
    assert [(each.kind, each.before) for each in found] == [("equal_responses", "response r1, response r2")]
    same = case("Why?", "en", "He slept well.", "He slept well.")
    assert findings(same, case("Warum?", "de", "Er schlief gut.", "Er schlief gut.")) == ()


def test_a_missing_response_is_found():
    found = findings(case("Why?", "en", "He slept.", "He left."), case("Warum?", "de", "Er schlief."))
    assert [(each.kind, each.place, each.before, each.after) for each in found] == [
        ("responses", "responses", "r1, r2", "r1")
    ]


def test_the_place_of_a_finding_is_its_text():
    source = case("Why 5 of 80?", "en", "Because of 17.", "Because of 18.")
    found = findings(source, case("Warum 5 von 80?", "de", "Wegen 17.", "Wegen 19."))
    assert [(each.kind, each.place, each.before, each.after) for each in found] == [
        ("number", "response r2", "18", "19")
    ]
