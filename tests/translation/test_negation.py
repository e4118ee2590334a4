"""Negations that pairs of languages lose or add, where the source is not English, too."""

import pytest

from negated_cases import case, negation

each = pytest.mark.parametrize


@each(
    ("before", "source", "after", "target"),
    [
        ("In caso contrario, esci.", "it", "Jika tidak, keluar.", "id"),
        ("В противном случае выйди.", "ru", "Kung hindi, lumabas.", "tl"),
        ("De lo contrario, sal.", "es", "Nếu không, đi ra.", "vi"),
        ("Andersins, gaan uit.", "af", "Ha nem, menj ki.", "hu"),
        ("否则，请离开。", "zh", "Jika tidak, keluar.", "id"),
        # A negation that is written twice is one.
        ("Die getal is nie groot nie, en dit is nie klein nie.", "af", "Il numero non è grande né piccolo.", "it"),
        ("Ons speel nie net nie, ons leer ook.", "af", "We play, and we learn, too.", "en"),
        ("See ei ole suur ega väike.", "et", "It is not big or small.", "en"),
        # "If there is none" is a negation in Turkish, besides "otherwise".
        ("Böyle bir sayı yoksa dur.", "tr", "Als er geen zulk getal is, stop.", "nl"),
        # What one language denies by a prefix, a verb or "un-", another one does by "not".
        ("La risposta era sbagliata.", "it", "Câu trả lời không đúng.", "vi"),
        ("Il testo è illeggibile.", "it", "Teks itu tidak bisa dibaca.", "id"),
        ("Kõik see on ebaselge.", "et", "Semua itu tidak jelas.", "id"),
        ("Het is ongewoon.", "nl", "Ce n'est pas courant.", "fr"),
        ("Есть нечёткий, несбалансированный список.", "ru", "La lista no está equilibrada.", "es"),
        ("هذا العمل غير قانوني.", "ar", "Questo lavoro è clandestino.", "it"),
        # A negation after "avoid" and "prevent" negates nothing.
        ("เขาเลี่ยงที่จะไม่พูดถึงมัน", "th", "Evitò di parlarne.", "it"),
        ("Mama alimzuia asitoke.", "sw", "Ibunya mencegah dia keluar.", "id"),
        # Words for questions, for zero and for "empty".
        ("Bạn có đến đây không?", "vi", "Kommst du hierher?", "de"),
        ("คุณมาที่นี่หรือไม่", "th", "Vieni qui?", "it"),
        ("Non vedevo l'ora di partire.", "it", "Saya menantikan perjalanan itu.", "id"),
    ],
)
def test_right_translations_of_any_source_have_no_finding(before, source, after, target):
    assert not negation(case(before, source), case(after, target))


@each(
    ("before", "source", "after", "target"),
    [
        ("Bạn có đến đây không?", "vi", "Kommst du nicht hierher?", "de"),
        ("คุณมาที่นี่หรือไม่", "th", "Non vieni qui?", "it"),
        ("Sette numeri non sono primi.", "it", "Tujuh bilangan adalah prima.", "id"),
        ("আপনি কি এখানে আসেন?", "bn", "Non vieni qui?", "it"),
        ("Mul on see raamatu lugu.", "et", "Non ho questa storia.", "it"),
        ("De oneven getallen zijn hier.", "nl", "Die ungeraden Zahlen sind nicht hier.", "de"),
        # A phrase that the translation has, too, excuses nothing else.
        ("Return a non-empty list of numbers.", "en", "لا ترجع قائمة غير فارغة من الأرقام.", "ar"),
        ("Una lista non vuota di numeri.", "it", "Bukan daftar angka tidak kosong.", "id"),
        ("The list is empty, and not sorted.", "en", "Ang listahan ay walang laman at naayos.", "tl"),
        ("It is not zero.", "en", "Είναι μηδέν.", "el"),
        ("It is a non-empty list, and not a short one.", "en", "Es una lista no vacía, y corta.", "es"),
    ],
)
def test_lost_and_added_negations_of_any_source_are_found(before, source, after, target):
    assert negation(case(before, source), case(after, target))


@each(
    ("before", "source", "after", "target"),
    [
        ("Sort a non-empty list.", "en", "Ordena una lista vacía.", "es"),
        ("Take a nonnegative number.", "en", "Nimm eine negative Zahl.", "de"),
        ("The sum is non-zero.", "en", "Сумма нулевая.", "ru"),
        ("Nimm eine nicht negative Zahl.", "de", "Take a negative number.", "en"),
        ("Toma un número no negativo.", "es", "Prends un nombre négatif.", "fr"),
        ("输入非负整数。", "zh", "Enter a negative integer.", "en"),
        ("Дан непустой список.", "ru", "Given is an empty list.", "en"),
        ("Diberikan senarai tidak kosong.", "ms", "Gegeben ist eine leere Liste.", "de"),
        ("Sort a list. It is not sorted. The list is non-empty.", "en", "排序列表。它没有排序。列表为空。", "zh"),
    ],
)
def test_a_property_that_lost_its_prefix_is_found(before, source, after, target):
    assert negation(case(before, source), case(after, target))


@each(
    ("before", "source", "after", "target"),
    [
        ("Sort a non-empty list.", "en", "Ordena una lista que no esté vacía.", "es"),
        ("Sort a non-empty list.", "en", "对非空列表排序。", "zh"),
        ("Sort a non-empty list.", "en", "Boş olmayan bir listeyi sırala.", "tr"),
        ("Take a non-negative number.", "en", "Vezmi nezáporné číslo.", "cs"),
        ("Take a non-negative number.", "en", "Візьми невід'ємне число.", "uk"),
        ("Take a non-negative number.", "en", "음이 아닌 수를 고르세요.", "ko"),
        ("输入非负整数。", "zh", "Enter a nonnegative integer.", "en"),
        ("The list is never empty.", "en", "La liste est non vide.", "fr"),
        # Other words with "non-" have names that negate nothing.
        ("He read a non-fiction book in a non-stick pan.", "en", "Er las ein Sachbuch in einer Pfanne.", "de"),
    ],
)
def test_a_property_that_is_negated_in_any_way_is_kept(before, source, after, target):
    assert not negation(case(before, source), case(after, target))
