"""The identity of language codes: which spellings name one language."""

import tomllib
from importlib.resources import files

import pytest

from steelyard.core.languages import language_key, language_named, nearest_languages, writing_direction


@pytest.mark.parametrize(
    "codes",
    [
        ("en", "EN", " en ", "eng", "en-US", "en_GB", "eng_Latn", "ｅｎ", "en_US.UTF-8", "en-001"),
        ("zh", "ZH", "zh-CN", "zh_cn", "zh-SG", "zho", "chi", "cmn", "zho_Hans", "cmn-Hans-CN", "zh-Hans", "zh-chs"),
        ("zh-Hant", "zh-TW", "zh_hk", "zh-MO", "zho_Hant", "cmn_Hant", "zh-Hant-HK", "zh-cht", "zh-cmn-Hant"),
        ("he", "iw", "heb", "heb_Hebr", "iw-IL"),
        ("id", "in", "ind", "ind_Latn", "in-ID"),
        ("pt", "pt-br", "pt_PT", "PT-BR", "por", "por_Latn"),
        ("ar", "ara", "arb", "arb_Arab", "ar-EG"),
        ("fa", "per", "fas", "pes_Arab"),
        ("sr", "srp", "sr-RS", "srp_Cyrl"),
        ("sr-Latn", "sr_Latn_RS", "srp_Latn", "sr@latin", "sh", "sr-ME"),
        ("ja", "jp", "jpn", "jpn_Jpan", "ja-JP"),
        ("ko", "kor", "kor_Hang", "ko-KR", "kor_Kore"),
        ("no", "nb", "nob_Latn", "nb-NO", "nor"),
        ("yi", "ji", "ydd_Hebr"),
        ("yue", "zh-yue", "yue_Hant", "yue-HK"),
        ("fil", "tl", "tgl_Latn"),
        ("el", "gre", "ell_Grek"),
    ],
)
def test_spellings_of_a_language_have_one_key(codes):
    assert len({language_key(code) for code in codes}) == 1


def test_other_languages_and_scripts_have_other_keys():
    codes = [
        "zh",
        "zh-Hant",
        "yue",
        "yue-Hans",
        "sr",
        "sr-Latn",
        "hr",
        "bs",
        "nb",
        "nn",
        "ar",
        "arz",
        "ary",
        "prs",
        "fa",
    ]
    codes += ["arb_Latn", "pa", "pa-PK", "kk", "id", "ms", "in-Deva", "unspecified", "und", ""]
    assert len({language_key(code) for code in codes}) == len(codes)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (
            "zh",
            (
                "Chinese",
                "中文",
                "简体中文",
                "Simplified Chinese",
                "Chinese (Simplified)",
                "CHINESE",
                "Mandarin Chinese",
            ),
        ),
        (
            "zh-TW",
            (
                "Traditional Chinese",
                "繁體中文",
                "Chinese (Traditional)",
                "chinese-traditional",
                "中文（繁體）",
                "Chinese (Taiwan)",
            ),
        ),
        ("yue", ("Cantonese", "廣東話")),
        ("pt", ("Português", "Portugue\u0302s", "Portuguese (Brazil)", "Brazilian Portuguese", "portuguese")),
        ("es", ("Español", "Spanish", "Latin American Spanish", "Spanish (Latin America)")),
        ("ar", ("العربية", "Arabic", "Modern Standard Arabic")),
        ("arz", ("Egyptian Arabic",)),
        ("sr-Latn", ("Serbian (Latin)",)),
        ("sr", ("Serbian (Cyrillic)", "Српски")),
        ("hi", ("हिन्दी", "Hindi")),
        ("hi-Latn", ("Romanized Hindi",)),
        ("la", ("Latin",)),
        ("fa", ("Farsi", "فارسی")),
        ("en", ("English (US)", "British English", "英语")),
        ("ja", ("日本語", "Japanese")),
        ("nb", ("Norwegian Bokmål",)),
        ("tr", ("Türkçe",)),
    ],
)
def test_names_are_the_language_of_their_code(code, names):
    assert {language_key(name) for name in names} == {language_key(code)}


def test_a_code_is_no_name_and_an_unknown_name_has_the_nearest_codes():
    assert language_named("zh") is language_named("Klingon") is language_named("Brazil") is None
    assert nearest_languages("Chinise")[0] == "zh"
    assert nearest_languages("Portugese")[0] == "pt"
    assert nearest_languages("?") == ["zh", "en"]


def test_a_text_that_is_no_code_is_itself():
    assert language_key("Old  English") == language_key("old-english") == "old english"
    assert language_key("unspecified") == "unspecified"


def test_the_codes_of_a_row_of_the_table_are_one_and_rows_are_several():
    table = tomllib.loads(files("steelyard").joinpath("data/languages.toml").read_text("utf-8"))
    keys = {name: {language_key(code) for code in row["codes"]} for name, row in table.items()}
    assert all(len(each) == 1 for each in keys.values())
    assert keys.pop("chinese") == keys["chinese_simplified"] == {"zh"}
    assert len(set.union(*keys.values())) == len(keys)


def test_the_direction_of_a_text_is_that_of_its_script():
    assert {writing_direction(code) for code in ("ar", "arb_Arab", "he", "fa", "ur", "dv", "az-Arab")} == {"rtl"}
    assert {writing_direction(code) for code in ("en", "zh-Hant", "hin_Deva", "sr-Cyrl", "ks-Deva")} == {"ltr"}
    assert {writing_direction(code) for code in (None, "", "tokipona")} == {"auto"}
