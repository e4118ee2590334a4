"""Private data in texts: one table of patterns, each with its check digits where the number has some.

A rule finds the written form of a number, with or without its usual spaces, hyphens and dots, in digits of any script
and width. Then the check digit decides, and the date or the structure where there is none. A number that chance alone
would produce too often needs one of its rule's words in the 40 characters before it, without a digit in between.
Names, and addresses without a street or a postcode, are not found; recall on numbers without their word is low.

Check digits are those of python-stdnum (the extra ``multilingual``), save for countries that it lacks. Sources: GB
11643-1999 (China), ISO 7064, ISO/IEC 7812-1 (bank cards), ISO 13616 (IBAN), ITU-T E.164 (telephone numbers).
"""

import importlib
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, NamedTuple

PrivateKind = Literal[
    "address", "bank_card", "e_mail", "iban", "national_id", "passport", "phone", "tax_number"
]  # fmt: skip
_WORD_CHARACTERS = 40
"""The characters before a number in which its word is looked for."""


class PrivateDataRule(NamedTuple):
    """A rule: what it finds, in which country, how it is written, what decides, and the words that it needs before.

    ``check`` is a module of python-stdnum, or a function of the characters without separators; null accepts all.
    ``hints`` are strings, every match holds one of them; a rule without them finds long numbers.
    """

    name: str
    kind: PrivateKind
    pattern: str
    check: str | Callable[[str], bool] | None = None
    words: str | None = None
    hints: str = ""


class PrivateDatum(NamedTuple):
    """Private data at ``text[start:end]``, and the name and kind of its rule."""

    start: int
    end: int
    rule: str
    kind: PrivateKind


def find_private_data(text: str) -> tuple[PrivateDatum, ...]:
    """Return the private data of a text in order; where rules overlap, that of the first in the table."""
    plain = text if text.isascii() else text.translate(_to_ascii())
    everywhere, near_numbers = _compiled()
    data: list[PrivateDatum] = []
    for rule in everywhere:
        # Most texts have none of the strings without which a rule finds nothing.
        if any(map(plain.__contains__, rule.hints)):
            _add_matches(data, plain, rule, 0, len(plain))
    for start, end in _surroundings(plain):
        for rule in near_numbers:
            _add_matches(data, plain, rule, start, end)
    return tuple(sorted(data))


def mask_private_data(text: str, data: Sequence[PrivateDatum]) -> str:
    """Return the text with each of ``data``, in order, replaced by its kind, such as ``[PHONE]``."""
    parts, end = [], 0
    for datum in data:
        parts += [text[end : datum.start], f"[{datum.kind.upper()}]"]
        end = datum.end
    return "".join((*parts, text[end:]))


def _surroundings(text: str) -> list[tuple[int, int]]:
    """Return the stretches around long numbers: all that the rules for numbers need to read."""
    stretches: list[tuple[int, int]] = []
    for match in _NUMBER.finditer(text):
        start, end = max(0, match.start() - _LONGEST_START), match.end() + _LONGEST_END
        if stretches and start <= stretches[-1][1]:
            start = stretches.pop()[0]
        stretches.append((start, end))
    return stretches


def _add_matches(data: list[PrivateDatum], text: str, rule: "_CompiledRule", start: int, end: int) -> None:
    for match in rule.pattern.finditer(text, start, end):
        first, last = match.span()
        is_free = all(last <= other.start or other.end <= first for other in data)
        if is_free and _has_words(text, match, rule.words) and _is_valid(rule, match.group()):
            data.append(PrivateDatum(first, last, rule.name, rule.kind))


def _has_words(text: str, match: re.Match[str], words: re.Pattern[str] | None) -> bool:
    if words is None:
        return True
    before = re.split(r"\d", text[max(0, match.start() - _WORD_CHARACTERS) : match.start()])[-1]
    # Without spaces a pattern of an address can begin at its word.
    return words.search(before + match.group()) is not None


def _is_valid(rule: "_CompiledRule", written: str) -> bool:
    if rule.check is None:
        return True
    if rule.kind in ("e_mail", "phone"):
        return rule.check(written)
    return rule.check(re.sub(r"[^0-9A-Za-z]", "", written).upper())


class _CompiledRule(NamedTuple):
    name: str
    kind: PrivateKind
    pattern: re.Pattern[str]
    check: Callable[[str], bool] | None
    words: re.Pattern[str] | None
    hints: tuple[str, ...]


@cache
def _compiled() -> tuple[tuple[_CompiledRule, ...], tuple[_CompiledRule, ...]]:
    """Return the rules for whole texts, which have hints, and those for the surroundings of long numbers."""
    rules = [
        _CompiledRule(
            rule.name,
            rule.kind,
            re.compile(rule.pattern),
            importlib.import_module(f"stdnum.{rule.check}").is_valid if isinstance(rule.check, str) else rule.check,
            re.compile(rule.words, re.IGNORECASE) if rule.words else None,
            tuple(rule.hints.split()),
        )
        for rule in RULES
    ]
    return tuple(rule for rule in rules if rule.hints), tuple(rule for rule in rules if not rule.hints)


@cache
def _to_ascii() -> dict[int, str]:
    """Return digits of all scripts, full-width forms, dashes and spaces as ASCII, each one character for one."""
    table = {point: str(unicodedata.decimal(chr(point))) for point in range(128, 0x1FBFA) if chr(point).isdecimal()}
    table |= {point: chr(point - 0xFEE0) for point in range(0xFF01, 0xFF5F)}
    table |= dict.fromkeys((*range(0x2010, 0x2016), 0x2212, 0xFE63, 0xFF0D), "-")
    return table | dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x3000), " ")


_NUMBER = re.compile(r"\d(?:[ .\-/()A-Za-z]{0,3}\d){5,}|[A-Z]{5}\d{4}[A-Z]")
_LONGEST_START, _LONGEST_END = 12, 42
"""The characters that a number can have before its first six digits and after its last."""
_BEFORE, _AFTER = r"(?<![0-9A-Za-z_])(?<!\d[ .,\-/:])", r"(?![0-9A-Za-z_])(?![ .,\-/:]\d)"


def _digits(*groups: int, first: str = "") -> str:
    """Return the pattern of groups of digits with a space, hyphen or dot between them, or nothing."""
    return _BEFORE + first + r"[ .\-]?".join(rf"\d{{{size}}}" for size in groups) + _AFTER


_IBAN_LENGTHS = {
    15: "NO", 16: "BE", 18: "DK FI FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU XK", 21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS", 23: "AE GI IL IQ OM TL", 24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB NI PL SV",
    29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
}  # fmt: skip
"""Countries by the length of their account numbers (the registry of ISO 13616)."""
_IBAN = "|".join(
    rf"(?:{names.replace(' ', '|')})\d{{2}}(?: ?[A-Z0-9]){{{length - 4}}}" for length, names in _IBAN_LENGTHS.items()
)
_IBAN = rf"(?:{_IBAN})"


def _is_date(year: int, month: int, day: int) -> bool:
    days = (31, 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28, 31, 30, 31, 30)
    return 1 <= month <= 12 and 1 <= day <= (*days, 31, 31, 30, 31, 30, 31)[month - 1]


def _is_chinese_id(number: str) -> bool:
    """Check province, date of birth and check character (ISO 7064 mod 11-2)."""
    values = [10 if character == "X" else int(character) for character in number]
    is_checked = sum(value * pow(2, 17 - place, 11) for place, value in enumerate(values)) % 11 == 1
    is_province = int(number[:2]) in (*range(11, 16), *range(21, 24), *range(31, 38), *range(41, 47), *range(50, 55),
                                      *range(61, 66), 71, 81, 82, 83)  # fmt: skip
    year, month, day = int(number[6:10]), int(number[10:12]), int(number[12:14])
    return is_checked and is_province and 1850 <= year <= 2099 and _is_date(year, month, day)


def _is_taiwanese_id(number: str) -> bool:
    letter = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(number[0]) + 10
    weighted = [letter // 10, letter % 10 * 9, *(int(digit) * (8 - place) for place, digit in enumerate(number[1:9]))]
    return (sum(weighted) + int(number[9])) % 10 == 0


def _is_hong_kong_id(number: str) -> bool:
    letters = number.rstrip("0123456789")[:2] if not number.endswith("A") else re.split(r"\d", number)[0]
    values = [36] * (2 - len(letters)) + [ord(letter) - 55 for letter in letters]
    values += [10 if digit == "A" else int(digit) for digit in number[len(letters) :]]
    return sum(value * (9 - place) for place, value in enumerate(values)) % 11 == 0


def _is_korean_id(number: str) -> bool:
    """Check the date of birth; numbers assigned since October 2020 have no check digit."""
    century = {"1": 1900, "2": 1900, "5": 1900, "6": 1900}.get(number[6], 2000)
    return _is_date(century + int(number[:2]), int(number[2:4]), int(number[4:6]))


def _is_iranian_id(number: str) -> bool:
    remainder = sum(int(digit) * (10 - place) for place, digit in enumerate(number[:9])) % 11
    return len(set(number)) > 1 and int(number[9]) == (remainder if remainder < 2 else 11 - remainder)


def _is_russian_insurance_number(number: str) -> bool:
    return sum(int(digit) * (9 - place) for place, digit in enumerate(number[:9])) % 101 % 100 == int(number[9:])


def _is_luhn(number: str) -> bool:
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(number))]
    return len(set(number)) > 1 and sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


def _is_egyptian_id(number: str) -> bool:
    return _is_date(1700 + 100 * int(number[0]) + int(number[1:3]), int(number[3:5]), int(number[5:7]))


def _is_indonesian_id(number: str) -> bool:
    """Check the date of birth, whose day is 40 more for women; without a check digit."""
    return 11 <= int(number[:2]) <= 97 and _is_date(2000, int(number[8:10]), int(number[6:8]) % 40)


def _is_e_mail(address: str) -> bool:
    """Refuse the domains that RFC 2606 reserves for examples, and the name under which git addresses servers."""
    name, _, domain = address.lower().rpartition("@")
    return name != "git" and not re.search(
        r"(^|\.)(example\.(com|net|org)|x+\.com|example|test|invalid|localhost)$", domain
    )


_CALLING_CODE = re.compile(
    r"1|7|2[07]|3[0123469]|4[013456789]|5[12345678]|6[0123456]|8[1246]|9[0123458]"
    r"|2[1234569]\d|3[578]\d|42\d|5[09]\d|6[789]\d|8[05678]\d|9[679]\d"
)


def _is_phone_number(written: str) -> bool:
    """Check length and country of an international number (ITU-T E.164), and refuse placeholders."""
    number = re.sub(r"\D", "", written)
    is_national = not written.startswith("+")
    is_likely = 8 <= len(number) <= 15 and len(set(number)) > 2 and "1234567890" not in number
    return is_likely and (is_national or bool(_CALLING_CODE.match(number)))


_PHONE_WORDS = (
    r"\btel\b|\btél|\bphone|\bmobile|\bcell\b|\bwhatsapp|telephone|telefon|téléphone|teléfono|telefone|cellulare|"
    r"celular|móvil|handy|gsm|numéro|電話|电话|手机|手機|联系方式|微信|传真|携帯|전화|휴대폰|연락처|τηλ|κινητό|тел|"
    r"телефон|моб|điện thoại|số điện|\bsđt|\bhp\b|nomor (?:hp|telepon)|telepon|هاتف|جوال|موبايل|تلفن|موبایل|شماره|"
    r"טלפון|נייד|फ़ोन|फोन|मोबाइल"
)
_ADDRESS_WORDS = (
    r"address|live at|lives at|resid|adresse|wohn|dirección|domicilio|endereço|indirizzo|adres|bydliště|adresa|"
    r"διεύθυνση|адрес|адреса|alamat|địa chỉ|住址|地址|家住|住在|住所|주소|عنوان|آدرس|כתובת|पता"
)
RULES: tuple[PrivateDataRule, ...] = (
    PrivateDataRule("e_mail", "e_mail", r"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@(?:[A-Za-z0-9][\w-]{0,62}\.)+[A-Za-z]{2,24}(?![\w@])", _is_e_mail, hints="@"),
    PrivateDataRule("iban", "iban", _BEFORE + _IBAN + _AFTER, "iban"),
    PrivateDataRule("chinese_resident_id", "national_id", _BEFORE + r"[1-8]\d{5}[ -]?(?:18|19|20)\d{6}[ -]?\d{3}[0-9Xx]" + _AFTER, _is_chinese_id),
    PrivateDataRule("italian_codice_fiscale", "tax_number", _BEFORE + r"[A-Za-z]{6}[ -]?[0-9A-Za-z]{2}[A-Za-z][0-9A-Za-z]{2}[ -]?[A-Za-z][0-9A-Za-z]{3}[A-Za-z]" + _AFTER, "it.codicefiscale"),
    PrivateDataRule("french_nir", "national_id", _BEFORE + r"[12] ?\d{2} ?\d{2} ?(?:\d{2}|2[ABab]) ?\d{3} ?\d{3} ?\d{2}" + _AFTER, "fr.nir"),
    PrivateDataRule("bank_card", "bank_card", _BEFORE + r"(?:4\d{3}|5[1-5]\d{2}|2[2-7]\d{2}|6\d{3}|35\d{2}|9792)(?:[ -]?\d{4}){3}(?:[ -]?\d{1,3})?" + _AFTER, _is_luhn),
    PrivateDataRule("bank_card", "bank_card", _digits(4, 6, 5, first="(?=3[47])"), _is_luhn),
    PrivateDataRule("spanish_dni", "national_id", _BEFORE + r"\d{8}[ -]?[A-Za-z]" + _AFTER, "es.dni"),
    PrivateDataRule("spanish_nie", "national_id", _BEFORE + r"[XYZxyz][ -]?\d{7}[ -]?[A-Za-z]" + _AFTER, "es.nie"),
    PrivateDataRule("brazilian_cpf", "tax_number", _BEFORE + r"\d{3}\.\d{3}\.\d{3}-\d{2}" + _AFTER, "br.cpf"),
    PrivateDataRule("brazilian_cpf", "tax_number", _digits(3, 3, 3, 2), "br.cpf", r"\bcpf\b"),
    PrivateDataRule("portuguese_nif", "tax_number", _digits(3, 3, 3), "pt.nif", r"\bnif\b|contribuinte"),
    PrivateDataRule("romanian_cnp", "national_id", _digits(1, 2, 2, 2, 6, first="(?=[1-8])"), "ro.cnp"),
    PrivateDataRule("korean_rrn", "national_id", _BEFORE + r"\d{6} ?- ?[1-8]\d{6}" + _AFTER, _is_korean_id),
    PrivateDataRule("korean_rrn", "national_id", _BEFORE + r"\d{6}[1-8]\d{6}" + _AFTER, _is_korean_id, "주민"),
    PrivateDataRule("czech_rodne_cislo", "national_id", _BEFORE + r"\d{6}/\d{3,4}" + _AFTER, "cz.rc"),
    PrivateDataRule("czech_rodne_cislo", "national_id", _digits(6, 4), "cz.rc", r"rodn[éeá]"),
    PrivateDataRule("us_social_security", "national_id", _BEFORE + r"\d{3}-\d{2}-\d{4}" + _AFTER, "us.ssn"),
    PrivateDataRule("us_social_security", "national_id", _digits(3, 2, 4), "us.ssn", r"social security|\bssn\b"),
    PrivateDataRule("canadian_sin", "national_id", _digits(3, 3, 3), "ca.sin", r"social insurance|\bsin\b"),
    PrivateDataRule("british_national_insurance", "national_id", _BEFORE + r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]" + _AFTER),
    PrivateDataRule("russian_snils", "national_id", _BEFORE + r"\d{3}-\d{3}-\d{3}[ -]\d{2}" + _AFTER, _is_russian_insurance_number),
    PrivateDataRule("russian_snils", "national_id", _digits(3, 3, 3, 2), _is_russian_insurance_number, "снилс|snils"),
    PrivateDataRule("russian_inn", "tax_number", _digits(12), "ru.inn", r"\bинн\b|\binn\b"),
    PrivateDataRule("ukrainian_tax_number", "tax_number", _digits(10), "ua.rntrc", r"рнокпп|\bіпн\b|ідентифікаційн|податков"),
    PrivateDataRule("polish_pesel", "national_id", _digits(11), "pl.pesel", "pesel"),
    PrivateDataRule("dutch_bsn", "national_id", _digits(4, 2, 3), "nl.bsn", r"\bbsn\b|burgerservice|sofinummer"),
    PrivateDataRule("dutch_bsn", "national_id", _digits(3, 3, 3), "nl.bsn", r"\bbsn\b|burgerservice|sofinummer"),
    PrivateDataRule("turkish_kimlik", "national_id", _digits(11), "tr.tckimlik", r"kimlik|\btc\b|\bt\.c\.|tckn"),
    PrivateDataRule("israeli_id", "national_id", _digits(8, 1), "il.idnr", r"תעודת זהות|ת[.]?[\"״]?ז|teudat|israeli id|\bid\b"),
    PrivateDataRule("german_tax_id", "tax_number", _digits(2, 3, 3, 3), "de.idnr", r"steuer|idnr|\btin\b"),
    PrivateDataRule("greek_amka", "national_id", _digits(6, 5), "gr.amka", "αμκα|amka"),
    PrivateDataRule("greek_afm", "tax_number", _digits(9), "gr.vat", "αφμ|afm|α.φ.μ"),
    PrivateDataRule("indian_aadhaar", "national_id", _digits(4, 4, 4), "in_.aadhaar", r"aadhaar|aadhar|आधार|uidai"),
    PrivateDataRule("indian_pan", "tax_number", _BEFORE + r"[A-Z]{3}[ABCFGHLJPTE][A-Z]\d{4}[A-Z]" + _AFTER, "in_.pan"),
    PrivateDataRule("indonesian_nik", "national_id", _digits(6, 6, 4), _is_indonesian_id, r"\bnik\b|ktp|kependudukan"),
    PrivateDataRule("iranian_melli_code", "national_id", _digits(3, 6, 1), _is_iranian_id, "کد ملی|کدملی|شماره ملی|melli"),
    PrivateDataRule("japanese_my_number", "national_id", _digits(4, 4, 4), "jp.in_", "マイナンバー|個人番号|my number"),
    PrivateDataRule("saudi_id", "national_id", _digits(10, first="(?=[12])"), _is_luhn, "هوية|إقامة|اقامة|iqama|saudi id"),
    PrivateDataRule("egyptian_id", "national_id", _digits(14, first="(?=[23])"), _is_egyptian_id, "قومي|الرقم القومى|egypt"),
    PrivateDataRule("emirates_id", "national_id", _digits(3, 4, 7, 1, first="(?=784)"), _is_luhn),
    PrivateDataRule("vietnamese_cccd", "national_id", _digits(3, 3, 6, first="(?=0[0-9]{2}[0-3])"), None, r"cccd|căn cước|cmnd|chứng minh"),
    PrivateDataRule("taiwanese_id", "national_id", _BEFORE + r"[A-Z][1289]\d{8}" + _AFTER, _is_taiwanese_id),
    PrivateDataRule("hong_kong_id", "national_id", _BEFORE + r"[A-Z]{1,2}\d{6} ?\([0-9A]\)", _is_hong_kong_id),
    PrivateDataRule("passport", "passport", _BEFORE + r"[A-Za-z]{0,2}[ -]?\d{6,9}" + _AFTER, None, r"passport|passeport|pasaporte|passaporto|reisepass|paspoort|paszport|pașaport|passaporte|паспорт|護照|护照|旅券|パスポート|여권|hộ chiếu|paspor|pasaport|جواز|گذرنامه|דרכון|διαβατήρι|पासपोर्ट"),
    PrivateDataRule("international_phone", "phone", r"(?<![0-9A-Za-z_+])(?<!\d )(?:\+|00(?=[2-9]))\(?[1-9]\d{0,2}\)?(?:[ .\-/()]{0,2}\d){7,13}" + _AFTER, _is_phone_number),
    PrivateDataRule("chinese_mobile_phone", "phone", _digits(3, 4, 4, first=r"(?:86[ -]?)?(?=1[3-9])"), _is_phone_number),
    PrivateDataRule("chinese_landline_phone", "phone", _BEFORE + r"\(?0(?:10|2\d|[3-9]\d{2})\)?[ -]\d{7,8}" + _AFTER, _is_phone_number),
    PrivateDataRule("american_phone", "phone", r"(?<![0-9A-Za-z_])(?<!\d[ .,\-/:])(?:1[ .-])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[.-])(?!555)[2-9]\d{2}[.-]\d{4}" + _AFTER, _is_phone_number),
    PrivateDataRule("korean_mobile_phone", "phone", _BEFORE + r"01[016789]-\d{3,4}-\d{4}" + _AFTER, _is_phone_number),
    PrivateDataRule("japanese_phone", "phone", _BEFORE + r"0\d{1,3}-\d{2,4}-\d{4}" + _AFTER, _is_phone_number),
    PrivateDataRule("national_phone", "phone", _BEFORE + r"\(?\d{2,5}\)?(?:[ .\-/]{0,2}\d){5,10}" + _AFTER, _is_phone_number, _PHONE_WORDS),
    PrivateDataRule("taiwanese_address", "address", r"[\u4e00-\u9fff]{2}[市縣][\u4e00-\u9fff]{1,3}[區鄉鎮市][\u4e00-\u9fff]{1,8}[路街道段](?:\d{1,3}巷)?(?:\d{1,3}弄)?\d{1,4}號(?:\d{1,2}樓)?", hints="號"),
    PrivateDataRule("chinese_address", "address", r"[\u4e00-\u9fff]{2,12}(?:路|街|大道|巷|弄|胡同|村|小区|花园)[\u4e00-\u9fff]{0,4}\d{1,5} ?(?:号|弄|栋|幢|號)[\u4e00-\u9fff]{0,6}(?:\d{1,3} ?(?:单元|栋|幢|号楼|楼|樓|层)[\u4e00-\u9fff]{0,2})?\d{1,5} ?(?:室|号|户)", hints="号 號 弄 室 户 栋 幢"),
    PrivateDataRule("chinese_address", "address", r"[\u4e00-\u9fff]{2,12}(?:路|街|大道|巷|弄|胡同|段)\d{1,5} ?(?:号|弄|號)", None, _ADDRESS_WORDS, hints="号 號 弄 室 户 栋 幢"),
    PrivateDataRule("american_address", "address", _BEFORE + r"\d{1,5} (?:[NSEW]\.? )?(?:[A-Z][a-z]+ ){1,3}(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Way)\b\.?,? (?:(?:Apt|Unit|Suite|#)\.? ?\w{1,5},? )?[A-Z][A-Za-z ]{2,30},? [A-Z]{2} \d{5}(?!\d)", hints="St Ave Road Rd Boulevard Blvd Lane Ln Drive Dr Court Ct Way"),
    PrivateDataRule("british_address", "address", _BEFORE + r"\d{1,4}[A-Za-z]? (?:[A-Z][a-z]+ ){1,3}(?:Street|Road|Avenue|Lane|Close|Drive|Gardens|Crescent)\b,[A-Za-z ,\n]{2,60}[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}\b", hints="Street Road Avenue Lane Close Drive Gardens Crescent"),
    PrivateDataRule("german_address", "address", r"\b[A-ZÄÖÜ][a-zäöüß]+(?:straße|strasse|str\.|weg|platz|allee) \d{1,4} ?[a-z]?,? \d{5} [A-ZÄÖÜ][a-zäöüß]+", hints="straße strasse str. weg platz allee"),
    PrivateDataRule("french_address", "address", _BEFORE + r"\d{1,4}(?: bis| ter)?,? (?:rue|avenue|boulevard|place|chemin|allée|impasse) [^\n\d]{3,50}\d{5} [A-ZÀ-Ý][\w-]+", hints="rue avenue boulevard place chemin allée impasse"),
    PrivateDataRule("southern_european_address", "address", r"\b(?:Calle|C/|Avenida|Avda\.?|Plaza|Rua|Travessa|Via|Viale|Corso|Piazza) [^\n\d]{3,40}\d{1,4}(?:, ?\d{1,2}\.?[ºª°])?[^\n\d]{1,30}\d{4,5}(?:-\d{3})? [A-ZÀ-Ý]\w+", hints="Calle C/ Avenida Avda Plaza Rua Travessa Via Viale Corso Piazza"),
    PrivateDataRule("dutch_address", "address", r"\b[A-Z][a-z]+(?:straat|laan|weg|plein|gracht|kade) \d{1,4} ?[a-z]?,? \d{4} ?[A-Z]{2}\b", hints="straat laan weg plein gracht kade"),
    PrivateDataRule("polish_address", "address", r"\bul\. [A-ZŁŚŻŹĆ]\w+(?: \w+)? \d{1,4}(?:/\d{1,4})?,? \d{2}-\d{3} [A-ZŁŚŻŹĆ]\w+", hints="ul."),
    PrivateDataRule("east_slavic_address", "address", r"\b(?:ул\.|улица|вул\.|вулиця|пр\.|проспект) ?[А-ЯІЇЄ][\w .-]{2,40}, ?(?:д\.|дом|буд\.|будинок) ?\d{1,4}[\w/]{0,3}(?:, ?(?:кв\.|квартира) ?\d{1,4})?", hints="ул. улица вул. вулиця пр. проспект"),
    PrivateDataRule("turkish_address", "address", r"(?:Sok(?:ak|\.)|Cad(?:desi|\.)|Mah(?:allesi|\.))[^\n\d]{0,40}No ?[:.]? ?\d{1,4}", hints="Sok Cad Mah"),
    PrivateDataRule("japanese_address", "address", r"[都道府県][\u3040-\u30ff\u4e00-\u9fff]{1,10}[市区町村郡][\u3040-\u30ff\u4e00-\u9fff]{1,12}\d{1,3}(?:丁目|-\d{1,3}|番地?)", hints="丁目 番 -"),
    PrivateDataRule("korean_address", "address", r"[가-힣]{1,6}(?:시|도|군) [가-힣]{1,6}(?:구|시|군)(?: [가-힣]{1,6}[읍면동])? [가-힣0-9]{1,10}(?:로|길) ?\d{1,4}", hints="로 길"),
    PrivateDataRule("vietnamese_address", "address", r"\b[Ss]ố \d{1,4}[A-Za-z]?,? (?:ngõ|đường|phố|hẻm)[^\n\d]{2,40}(?:quận|phường|Quận|Phường|TP)", hints="ngõ đường phố hẻm"),
    PrivateDataRule("indonesian_address", "address", r"\b(?:Jl\.?|Jalan) [A-Z][\w .]{2,40} [Nn]o\.? ?\d{1,4}", hints="Jl Jalan"),
    PrivateDataRule("arabic_address", "address", r"شارع [^\n\d]{2,40}(?:رقم|مبنى|عمارة|بناية|شقة|منزل|فيلا) ?\d{1,4}|(?<!\d)\d{1,4}[،,]? شارع [\u0600-\u060b\u060d-\u065f\u0670-\u06ff ]{2,40}[،,] ?[\u0620-\u064a]{3,}", hints="شارع"),
    PrivateDataRule("persian_address", "address", r"(?:خیابان|بلوار|کوچه|میدان) [^\n\d]{2,60}(?:پلاک|شماره|واحد) ?\d{1,4}", hints="پلاک شماره واحد"),
    PrivateDataRule("israeli_address", "address", r"(?:רחוב|רח['׳]|שדרות|שד['׳]) [א-ת\"'׳״ -]{2,30} \d{1,3}(?:/\d{1,3})?, ?[א-ת]{2,}", hints="רחוב רח שדרות שד"),
    PrivateDataRule("indian_address", "address", r"(?:मकान|फ्लैट|प्लॉट|गली)(?: ?(?:नंबर|नं\.?|संख्या))? ?\d{1,4}[^\n\d]{2,60}[1-9]\d{5}(?!\d)", hints="मकान फ्लैट प्लॉट गली"),
    PrivateDataRule("indian_address", "address", _BEFORE + r"\d{1,5}[/\w-]{0,4},? (?:[A-Z][\w.]* ){1,4}(?:Road|Rd|Nagar|Marg|Colony|Layout|Chowk)\b[^\n\d]{2,50}[1-9]\d{2} ?\d{3}(?!\d)", hints="Road Rd Nagar Marg Colony Layout Chowk"),
    PrivateDataRule("greek_address", "address", r"(?:(?:[Οο]δ(?:ός|ού|\.)|[Λλ]εωφ(?:όρος|όρου|\.)|[Ππ]λατεία[ς]?) [^\n\d]{2,40} \d{1,4}[^\n\d]{1,12}|[Α-ΩΆ-Ώ]\w+ \d{1,4}, ?Τ\.?Κ\.? ?)\d{3} ?\d{2}(?!\d)", hints="δός δού δ. εωφ λατεία ΤΚ Τ.Κ"),
    PrivateDataRule("czech_address", "address", r"\b[A-ZÁ-Ž][^\W\d]+(?: [^\W\d]+){0,3} \d{1,4}(?:/\d{1,4}[a-z]?)?, ?\d{3} ?\d{2} [A-ZÁ-Ž]\w+", hints="ulice ul. nám. náměstí třída tř. PSČ Praha Brno Ostrava Plzeň Liberec Olomouc"),
    PrivateDataRule("romanian_address", "address", r"\b(?:Str\.|Strada|Bd\.|B-dul|Bulevardul|Calea|Aleea|Șos\.|Șoseaua) [A-ZĂÂÎȘȚ][^\n\d]{2,40}\b(?:[Nn]r\.?|numărul) ?\d{1,4}", hints="nr Nr numărul"),
)  # fmt: skip
"""The rules in order of precedence."""
