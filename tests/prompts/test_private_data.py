import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import luhn, verhoeff
from stdnum.iso7064 import mod_11_2, mod_11_10

from each_value import each
from steelyard.prompts.private_data import RULES, find_private_data, mask_private_data

EXAMPLES = [
    ("chinese_resident_id", "我的身份证号是11010519491231002X。"),
    ("chinese_resident_id", "１１０１０５１９４９１２３１００２Ｘ"),
    ("iban", "GB82 WEST 1234 5698 7654 32"),
    ("iban", "Pay to DE89370400440532013000 BY MONDAY"),
    ("italian_codice_fiscale", "RSSMRA85T10A562S"),
    ("spanish_dni", "12345678Z"),
    ("spanish_nie", "X-1234567-L"),
    ("french_nir", "2 55 08 14 168 025 38"),
    ("brazilian_cpf", "529.982.247-25"),
    ("brazilian_cpf", "CPF: 52998224725"),
    ("polish_pesel", "PESEL 44051401359"),
    ("dutch_bsn", "BSN 1112.22.333"),
    ("turkish_kimlik", "T.C. kimlik no: 10000000146"),
    ("israeli_id", "ת.ז 123456782"),
    ("indian_aadhaar", "Aadhaar 2341 2341 2346"),
    ("iranian_melli_code", "کد ملی ۰۰۱۳۵۴۲۴۱۹"),
    ("czech_rodne_cislo", "710319/2745"),
    ("romanian_cnp", "1630615123457"),
    ("ukrainian_tax_number", "РНОКПП 1759013776"),
    ("russian_inn", "ИНН 500100732259"),
    ("russian_snils", "112-233-445 95"),
    ("portuguese_nif", "NIF 123456789"),
    ("greek_amka", "ΑΜΚΑ 01013099997"),
    ("greek_afm", "ΑΦΜ 094259216"),
    ("german_tax_id", "Steuer-ID 36 574 261 809"),
    ("taiwanese_id", "A123456789"),
    ("hong_kong_id", "A123456(3)"),
    ("japanese_my_number", "マイナンバー 123456789018"),
    ("korean_rrn", "800101-1234567"),
    ("indonesian_nik", "NIK 3171011708450001"),
    ("us_social_security", "536-90-4399"),
    ("british_national_insurance", "AB 12 34 56 C"),
    ("vietnamese_cccd", "CCCD 001089012345"),
    ("bank_card", "4111 1111 1111 1111"),
    ("e_mail", "邮箱：zhang.san@qq.com"),
    ("chinese_mobile_phone", "手机13800138000，"),
    ("chinese_mobile_phone", "138-0013-8000"),
    ("international_phone", "+44 20 7946 0958"),
    ("national_phone", "Tel. 030 1234567"),
    ("passport", "护照E12345678"),
    ("chinese_address", "上海市浦东新区张江路123号5号楼602室"),
    ("chinese_address", "我家住北京市海淀区中关村大街27号"),
    ("american_address", "123 Main Street, Springfield, IL 62704"),
    ("taiwanese_address", "他住在台北市信義區忠孝東路五段100號7樓"),
    ("british_address", "221 Baker Street, London NW1 6XE"),
    ("german_address", "Hauptstraße 5, 10115 Berlin"),
    ("french_address", "12 rue de la Paix, 75002 Paris"),
    ("southern_european_address", "Calle de Alcalá 45, 2.º B, 28014 Madrid"),
    ("southern_european_address", "Rua Augusta 123, 1100-053 Lisboa"),
    ("southern_european_address", "Via Garibaldi 7, 20121 Milano"),
    ("dutch_address", "Keizersgracht 123, 1015 CJ Amsterdam"),
    ("polish_address", "ul. Marszałkowska 10/12, 00-590 Warszawa"),
    ("east_slavic_address", "ул. Ленина, д. 5, кв. 12"),
    ("east_slavic_address", "вул. Хрещатик, буд. 22"),
    ("turkish_address", "Atatürk Mahallesi Gül Sokak No: 12"),
    ("japanese_address", "東京都港区芝公園4丁目"),
    ("korean_address", "서울시 강남구 테헤란로 152"),
    ("vietnamese_address", "số 12 đường Lê Lợi, quận 1"),
    ("indonesian_address", "Jl. Sudirman No. 45"),
    ("arabic_address", "أسكن في ١٢ شارع التحرير، القاهرة"),
    ("arabic_address", "شارع الملك فهد، مبنى 7"),
    ("persian_address", "تهران، خیابان ولیعصر، پلاک ۲۴"),
    ("israeli_address", "רחוב הרצל 12, תל אביב"),
    ("indian_address", "मकान नंबर 12, गांधी नगर, दिल्ली 110031"),
    ("indian_address", "221, Mahatma Gandhi Road, Bengaluru 560001"),
    ("greek_address", "Οδός Ερμού 12, 105 63 Αθήνα"),
    ("czech_address", "Vinohradská 12/34, 120 00 Praha 2"),
    ("romanian_address", "Str. Victoriei nr. 5, București"),
]
SURROUNDINGS = st.sampled_from(
    [("", ""), ("我的号码是", "。"), ("my number is ", ", thanks"), ("(", ")"), ("：", "！")]
)


def rules_in(text):
    return {datum.rule for datum in find_private_data(text)}


def luhn_number(prefix, length, rng):
    body = prefix + "".join(str(rng.randrange(10)) for _ in range(length - len(prefix) - 1))
    return body + luhn.calc_check_digit(body)


def chinese_id(rng):
    date = f"{rng.randrange(1930, 2020)}{rng.randrange(1, 13):02}{rng.randrange(1, 29):02}"
    body = f"{rng.choice([110105, 310104, 440306, 510107])}{date}{rng.randrange(1000):03}"
    return body + mod_11_2.calc_check_digit(body)


def iban(rng):
    body = "".join(str(rng.randrange(10)) for _ in range(18))
    return f"DE{98 - int(f'{body}131400') % 97:02}{body}"


def digits(count, rng, *, first="0123456789"):
    return rng.choice(first) + "".join(str(rng.randrange(10)) for _ in range(count - 1))


def weighted(body, weights, modulus):
    return sum(int(digit) * weight for digit, weight in zip(body, weights, strict=True)) % modulus


def pesel(rng):
    date = f"{rng.randrange(100):02}{rng.randrange(1, 13):02}{rng.randrange(1, 29):02}"
    body = date + digits(4, rng)
    return f"PESEL {body}{-weighted(body, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3), 10) % 10}"


def dni(rng):
    body = digits(8, rng)
    return body + "TRWAGMYFPDXBNJZSQVHLCKE"[int(body) % 23]


def nir(rng):
    commune, order = rng.randrange(1, 990), rng.randrange(1, 999)
    body = f"{rng.choice('12')}{digits(2, rng)}{rng.randrange(1, 13):02}75{commune:03}{order:03}"
    return f"{body}{97 - int(body) % 97:02}"


def aadhaar(rng):
    body = digits(11, rng, first="23456789")
    return f"Aadhaar: {body}{verhoeff.calc_check_digit(body)}"


def kimlik(rng):
    body = [int(digit) for digit in digits(9, rng, first="123456789")]
    tenth = (7 * sum(body[::2]) - sum(body[1::2])) % 10
    return f"TC kimlik {''.join(map(str, body))}{tenth}{(sum(body) + tenth) % 10}"


def steuer_id(rng):
    # Of the first ten digits one occurs twice and one is absent.
    pool = rng.sample("123456789", 8)
    body = [*pool, rng.choice(pool), "0"]
    rng.shuffle(body)
    while body[0] == "0":
        rng.shuffle(body)
    number = "".join(body)
    return f"Steuer-ID {number}{mod_11_10.calc_check_digit(number)}"


GENERATORS = {
    "chinese_resident_id": chinese_id,
    "iban": iban,
    "bank_card": lambda rng: luhn_number(rng.choice(["4", "51", "62"]), 16, rng),
    "polish_pesel": pesel,
    "spanish_dni": dni,
    "french_nir": nir,
    "indian_aadhaar": aadhaar,
    "turkish_kimlik": kimlik,
    "german_tax_id": steuer_id,
    "saudi_id": lambda rng: "هوية " + luhn_number(rng.choice("12"), 10, rng),
    "emirates_id": lambda rng: luhn_number("7841990", 15, rng),
    "israeli_id": lambda rng: "תעודת זהות " + luhn_number(rng.choice("0123"), 9, rng),
}


@each(("rule", "text"), EXAMPLES)
def test_a_published_example_is_found(rule, text):
    assert rules_in(text) == {rule}


@pytest.mark.parametrize("rule", GENERATORS)
@given(seed=st.integers(0, 10**9), around=SURROUNDINGS)
def test_any_valid_number_is_found(rule, seed, around):
    number = GENERATORS[rule](random.Random(seed))
    assert rule in rules_in(around[0] + number + around[1])


@pytest.mark.parametrize("rule", GENERATORS)
@given(seed=st.integers(0, 10**9), place=st.integers(0, 30), change=st.integers(1, 9))
def test_a_number_with_one_other_digit_is_not_found(rule, seed, place, change):
    number = GENERATORS[rule](random.Random(seed))
    places = [index for index, character in enumerate(number) if character.isdecimal()]
    index = places[place % len(places)]
    changed = f"{number[:index]}{(int(number[index]) + change) % 10}{number[index + 1 :]}"
    assert rule not in rules_in(changed)


@pytest.mark.parametrize("separator", [" ", "-", "　", "\N{NO-BREAK SPACE}", "‐"])
def test_separators_and_full_width_digits_are_read(separator):
    number = separator.join(["4111", "1111", "1111", "1111"])
    wide = number.translate({ord("0") + digit: chr(0xFF10 + digit) for digit in range(10)})
    assert rules_in(number) == rules_in(wide) == {"bank_card"}


@pytest.mark.parametrize(
    "text",
    [
        "pi is 3.14159265358979",
        "1234567890123456",
        "a@example.com",
        "git@github.com:me/it.git",
        "call 123-456-7890",
        "The year 1998, 2003 and 2010; see pages 123-130.",
        "print([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])",
        "timestamp 1700000000000",
        "ISBN 978-3-16-148410-0",
        "192.168.100.200",
        "commit 3f9c2a7b81d04e55",
        "44051401359",
        "2023-11-22 21:14:51",
        "北京市海淀区中关村大街很长",
    ],
)
def test_ordinary_numbers_are_not_private(text):
    assert find_private_data(text) == ()


def test_private_data_are_masked_by_their_kind():
    text = "电话：１３８００１３８０００，邮箱 li@corp.cn。"
    assert mask_private_data(text, find_private_data(text)) == "电话：[PHONE]，邮箱 [E_MAIL]。"


@given(st.text(max_size=200))
def test_masking_keeps_everything_else(text):
    data = find_private_data(text)
    ends, starts = [0, *(datum.end for datum in data)], [*(datum.start for datum in data), len(text)]
    rest = "".join(text[end:start] for end, start in zip(ends, starts, strict=True))
    masked = mask_private_data(text, data)
    for datum in data:
        masked = masked.replace(f"[{datum.kind.upper()}]", "", 1)
    assert masked == rest


def test_rules_for_numbers_have_no_hints_and_the_others_some():
    for rule in RULES:
        assert (rule.hints == "") == (rule.kind not in ("address", "e_mail")), rule.name
