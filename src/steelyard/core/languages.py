"""The identity of a language: which codes of ISO 639, BCP 47 and FLORES-200, and which names, are one language.

Codes differ in case and separators, in two or three letters (bibliographic and terminological), in a region, and in a
script that the language is written in anyway. Deprecated codes and the standard member of a macrolanguage (``cmn``,
``arb``) count as the language. A language in another script stays another one: Traditional Chinese, Serbian in Latin.
Names are in English, in the language itself, and in some others. The sources are the code tables of ISO 639 and the
likely subtags and names of the Unicode CLDR.
"""

import difflib
import re
import unicodedata
from functools import lru_cache

_MOST_CODES = 4096
_CODES = (
    "aa:aar ab:abk ae:ave af:afr ak:aka am:amh an:arg ar:ara as:asm av:ava ay:aym az:aze ba:bak be:bel bg:bul "
    "bh:bih bi:bis bm:bam bn:ben bo:bod,tib br:bre bs:bos ca:cat ce:che ch:cha co:cos cr:cre cs:ces,cze cu:chu "
    "cv:chv cy:cym,wel da:dan de:deu,ger dv:div dz:dzo ee:ewe el:ell,gre en:eng eo:epo es:spa et:est "
    "eu:eus,baq fa:fas,per ff:ful fi:fin fj:fij fo:fao fr:fra,fre fy:fry ga:gle gd:gla gl:glg gn:grn gu:guj "
    "gv:glv ha:hau he:heb hi:hin ho:hmo hr:hrv ht:hat hu:hun hy:hye,arm hz:her ia:ina id:ind ie:ile ig:ibo "
    "ii:iii ik:ipk io:ido is:isl,ice it:ita iu:iku ja:jpn jv:jav ka:kat,geo kg:kon ki:kik kj:kua kk:kaz kl:kal "
    "km:khm kn:kan ko:kor ks:kas ku:kur kv:kom kw:cor ky:kir la:lat lb:ltz lg:lug li:lim ln:lin lo:lao lt:lit "
    "lu:lub lv:lav mg:mlg mh:mah mi:mri,mao mk:mkd,mac ml:mal mn:mon mr:mar ms:msa,may mt:mlt my:mya,bur "
    "na:nau nb:nob nd:nde ne:nep ng:ndo nl:nld,dut nn:nno no:nor nr:nbl nv:nav ny:nya oc:oci oj:oji om:orm "
    "or:ori os:oss pa:pan pi:pli pl:pol ps:pus pt:por qu:que rm:roh rn:run ro:ron,rum ru:rus rw:kin sa:san "
    "sc:srd sd:snd se:sme sg:sag si:sin sk:slk,slo sl:slv sm:smo sn:sna so:som sq:sqi,alb sr:srp ss:ssw st:sot "
    "su:sun sv:swe sw:swa ta:tam te:tel tg:tgk th:tha ti:tir tk:tuk tn:tsn to:ton tr:tur ts:tso tt:tat tw:twi "
    "ty:tah ug:uig uk:ukr ur:urd uz:uzb ve:ven vi:vie vo:vol wa:wln wo:wol xh:xho yi:yid yo:yor za:zha "
    "zh:zho,chi zu:zul "
)
"""Each code of two letters with its codes of three."""
_SAME = (
    "arb:ar cmn:zh pes:fa zsm:ms swh:sw quy:qu ekk:et lvs:lv npi:ne ory:or azj:az uzn:uz khk:mn plt:mg als:sq "
    "ydd:yi kmr:ku gaz:om pbt:ps nb:no nob:no ayr:ay fuv:ff gug:gn fil:tl tgl:tl ike:iu "
    "in:id iw:he ji:yi jw:jv mo:ro sh:sr hbs:sr scc:sr scr:hr jp:ja kr:ko "
)
"""Codes that name the language of another: of a macrolanguage's standard member, deprecated, and misused ones."""
_WRITTEN_IN = {
    "Cyrl": "ab av ba be bg ce cu cv kk kv ky mk mn os ru sr tg tt uk crh khk cv sah tyv udm krc myv",
    "Avst": "ae",
    "Ethi": "am ti",
    "Arab": "ar fa ks ps sd ug ur aeb apc ars ary arz ckb mzn prs",
    "Beng": "as bn mni",
    "Deva": "bh hi mr ne sa awa bho hne mag mai",
    "Tibt": "bo dz",
    "Cans": "cr iu",
    "Thaa": "dv",
    "Grek": "el",
    "Gujr": "gu",
    "Hebr": "he yi",
    "Armn": "hy",
    "Yiii": "ii",
    "Jpan": "ja",
    "Geor": "ka",
    "Khmr": "km",
    "Knda": "kn",
    "Kore": "ko",
    "Laoo": "lo",
    "Mlym": "ml",
    "Mymr": "my shn",
    "Orya": "or",
    "Guru": "pa",
    "Sinh": "si",
    "Taml": "ta",
    "Telu": "te",
    "Thai": "th",
    "Hans": "zh wuu nan hak",
    "Olck": "sat",
    "Hant": "yue",
    "Tfng": "zgh",
}
"""Languages by the script that they are usually written in; all others are in Latin script."""
_SCRIPT_OF_REGION = {
    "zh-TW": "Hant", "zh-HK": "Hant", "zh-MO": "Hant", "zh-CHT": "Hant", "yue-CN": "Hans", "sr-ME": "Latn",
    "pa-PK": "Arab", "az-IR": "Arab", "uz-AF": "Arab",
    "ku-IQ": "Arab", "ku-IR": "Arab", "mn-CN": "Mong", "kk-CN": "Arab",
}  # fmt: skip
_NAMES = (
    "af:Afrikaans sq:Albanian,Shqip am:Amharic,አማርኛ ar:Arabic,العربية,عربي,Modern_Standard_Arabic arz:Egyptian_Arabic "
    "ary:Moroccan_Arabic hy:Armenian,Հայերեն as:Assamese az:Azerbaijani,Azəri,Azərbaycan eu:Basque,Euskara "
    "be:Belarusian,Беларуская bn:Bengali,Bangla,বাংলা bs:Bosnian,Bosanski bg:Bulgarian,Български my:Burmese,မြန်မာ "
    "yue:Cantonese,粤语,粵語,廣東話,广东话 ca:Catalan,Català ceb:Cebuano zh:Chinese,Mandarin,Mandarin_Chinese,"
    "Putonghua,中文,汉语,漢語,华语,華語,普通话,国语,國語,中国語,중국어,Chino,Chinois,Chinês,Chinesisch,Cinese "
    "zh-Hans:简体中文,简体,中文简体,簡體中文 zh-Hant:繁體中文,繁体中文,正體中文,繁體,繁体,中文繁體,中文繁体 "
    "hr:Croatian,Hrvatski cs:Czech,Čeština,Česky da:Danish,Dansk nl:Dutch,Nederlands,Flemish "
    "en:English,Inglés,Anglais,Englisch,Inglês,Inglese,英语,英文,英語,영어,Английский,الإنجليزية eo:Esperanto "
    "et:Estonian,Eesti fil:Filipino fi:Finnish,Suomi fr:French,Français,Französisch,Francés,Francese,法语,法文,法語,"
    "フランス語,프랑스어,Французский gl:Galician,Galego ka:Georgian,ქართული de:German,Deutsch,Allemand,Alemán,Alemão,"
    "Tedesco,德语,德文,德語,ドイツ語,독일어,Немецкий el:Greek,Ελληνικά gu:Gujarati,ગુજરાતી ht:Haitian_Creole ha:Hausa "
    "he:Hebrew,עברית,Ivrit hi:Hindi,हिन्दी,हिंदी hu:Hungarian,Magyar is:Icelandic,Íslenska ig:Igbo "
    "id:Indonesian,Bahasa_Indonesia,印尼语 ga:Irish,Gaeilge it:Italian,Italiano,Italienisch,Italien,意大利语,义大利语 "
    "ja:Japanese,日本語,日语,日文,日語,일본어,Japonés,Japonais,Japanisch jv:Javanese,Basa_Jawa kn:Kannada,ಕನ್ನಡ "
    "kk:Kazakh,Қазақ,Қазақша km:Khmer,ខ្មែរ ko:Korean,한국어,조선말,韩语,韩文,韓語,韓文,韓国語,Coreano,Koreanisch "
    "ku:Kurdish,Kurmanji ckb:Sorani,Central_Kurdish ky:Kyrgyz,Kirghiz,Кыргызча lo:Lao,ລາວ la:Latin,Latina "
    "lv:Latvian,Latviešu lt:Lithuanian,Lietuvių mk:Macedonian,Македонски mg:Malagasy ms:Malay,Bahasa_Melayu,马来语 "
    "ml:Malayalam,മലയാളം mt:Maltese,Malti mi:Maori,Māori mr:Marathi,मराठी mn:Mongolian,Монгол ne:Nepali,नेपाली "
    "no:Norwegian,Norsk,Norwegian_Bokmål,Bokmål nn:Norwegian_Nynorsk,Nynorsk or:Odia,Oriya ps:Pashto,پښتو "
    "fa:Persian,Farsi,فارسی pl:Polish,Polski pt:Portuguese,Português,Portugiesisch,Portugués,Portugais,葡萄牙语 "
    "pa:Punjabi,Panjabi,ਪੰਜਾਬੀ qu:Quechua,Runasimi "
    "ro:Romanian,Română,Moldovan ru:Russian,Русский,Russisch,Ruso,Russe,俄语,俄文,俄語,"
    "ロシア語,러시아어 sa:Sanskrit gd:Scottish_Gaelic sr:Serbian,Srpski,Српски sn:Shona sd:Sindhi si:Sinhala,සිංහල "
    "sk:Slovak,Slovenčina sl:Slovenian,Slovene,Slovenščina so:Somali es:Spanish,Español,Castellano,Spanisch,Espagnol,"
    "Espanhol,西班牙语,西班牙文,스페인어,スペイン語 su:Sundanese sw:Swahili,Kiswahili sv:Swedish,Svenska tl:Tagalog "
    "tg:Tajik ta:Tamil,தமிழ் tt:Tatar te:Telugu,తెలుగు th:Thai,ไทย,ภาษาไทย,泰语 bo:Tibetan,藏语 ti:Tigrinya "
    "tr:Turkish,Türkçe,土耳其语 tk:Turkmen ug:Uyghur,Uighur uk:Ukrainian,Українська ur:Urdu,اردو uz:Uzbek,Oʻzbek,Ozbek "
    "vi:Vietnamese,Tiếng_Việt,Việt,越南语 cy:Welsh,Cymraeg wo:Wolof xh:Xhosa yi:Yiddish yo:Yoruba,Yorùbá zu:Zulu "
)
"""Each code with names of its language, with ``_`` for spaces; the first is English where it has an English one."""
_CHINESE_NAMES = (
    "af:南非荷兰语 am:阿姆哈拉语 ar:阿拉伯语 ary:摩洛哥阿拉伯语 arz:埃及阿拉伯语 as:阿萨姆语 "
    "az:阿塞拜疆语 be:白俄罗斯语 bg:保加利亚语 bn:孟加拉语 bs:波斯尼亚语 ca:加泰罗尼亚语 ceb:宿务语 "
    "ckb:中库尔德语 cs:捷克语 cy:威尔士语 da:丹麦语 el:希腊语 eo:世界语 et:爱沙尼亚语 eu:巴斯克语 "
    "fa:波斯语 fi:芬兰语 fil:菲律宾语 ga:爱尔兰语 gd:苏格兰盖尔语 gl:加利西亚语 gu:古吉拉特语 ha:豪萨语 "
    "he:希伯来语 hi:印地语 hr:克罗地亚语 ht:海地克里奥尔语 hu:匈牙利语 hy:亚美尼亚语 id:印度尼西亚语 "
    "ig:伊博语 is:冰岛语 jv:爪哇语 ka:格鲁吉亚语 kk:哈萨克语 km:高棉语 kn:卡纳达语 ku:库尔德语 "
    "ky:吉尔吉斯语 la:拉丁语 lo:老挝语 lt:立陶宛语 lv:拉脱维亚语 mg:马尔加什语 mi:毛利语 mk:马其顿语 "
    "ml:马拉雅拉姆语 mn:蒙古语 mr:马拉地语 mt:马耳他语 my:缅甸语 ne:尼泊尔语 nl:荷兰语 nn:新挪威语 "
    "no:挪威语 or:奥里亚语 pa:旁遮普语 pl:波兰语 ps:普什图语 qu:克丘亚语 ro:罗马尼亚语 sa:梵语 sd:信德语 "
    "si:僧伽罗语 sk:斯洛伐克语 sl:斯洛文尼亚语 sn:绍纳语 so:索马里语 sq:阿尔巴尼亚语 sr:塞尔维亚语 "
    "su:巽他语 sv:瑞典语 sw:斯瓦希里语 ta:泰米尔语 te:泰卢固语 tg:塔吉克语 ti:提格利尼亚语 tk:土库曼语 "
    "tl:他加禄语 tt:鞑靼语 ug:维吾尔语 uk:乌克兰语 ur:乌尔都语 uz:乌兹别克语 wo:沃洛夫语 xh:科萨语 "
    "yi:意第绪语 yo:约鲁巴语 zu:祖鲁语 ko:朝鲜语 "
)
"""More names in Chinese, as pages and spreadsheets have them."""
_PLACES = (
    "mainland china prc singapore brazil brasil brazilian portugal european america american us usa uk british united "
    "states kingdom canada canadian australia australian india indian mexico mexican spain france standard modern "
    "language han script"
)
_QUALIFIERS: dict[str, str | None] = {
    **dict.fromkeys(_PLACES.split()),
    "simplified": "Hans", "traditional": "Hant", "简体": "Hans", "簡體": "Hans", "繁體": "Hant", "繁体": "Hant",
    "正體": "Hant", "taiwan": "Hant", "taiwanese": "Hant", "hong": "Hant", "kong": "Hant", "macau": "Hant",
    "cyrillic": "Cyrl", "romanized": "Latn", "latin": "Latn", "devanagari": "Deva", "arabic": "Arab",
}  # fmt: skip
"""The script that a word beside a name tells, null for a word that tells none."""
_SCRIPT_OF_MODIFIER = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva", "arabic": "Arab"}

_SPLIT = re.compile(r"[^\W_]+")
_LANGUAGE = {name: code for entry in _CODES.split() for code, names in [entry.split(":")] for name in names.split(",")}
_LANGUAGE |= {code: same for code, _, same in (entry.partition(":") for entry in _SAME.split())}
_KNOWN = {code.partition(":")[0] for code in _CODES.split()} | set(_LANGUAGE.values())
_SCRIPT = {code: script for script, codes in _WRITTEN_IN.items() for code in codes.split()}


@lru_cache(_MOST_CODES)
def language_named(name: str) -> str | None:
    """Return the code of a language's name: ``zh-Hant`` for ``Traditional Chinese``; null for other texts."""
    parts = _parts(name)
    others = [part for part in parts if part not in _QUALIFIERS]
    code = _CODE_OF_NAME.get(" ".join(parts))
    if code is not None or not others:
        return code
    code = _CODE_OF_NAME.get(" ".join(others))
    script = next(filter(None, (_QUALIFIERS.get(part) for part in parts)), None)
    return code if code is None or script is None else language_key(f"{code}-{script}")


def _parts(text: str) -> list[str]:
    return _SPLIT.findall(unicodedata.normalize("NFKC", text).casefold())


_CODE_OF_NAME = {
    " ".join(_parts(name)): code
    for entry in (_NAMES + _CHINESE_NAMES).split()
    for code, names in [entry.split(":")]
    for name in names.split(",")
}
LANGUAGE_NAMES = {
    code: names.split(",")[0].replace("_", " ") for code, _, names in (entry.partition(":") for entry in _NAMES.split())
}
"""The English name of each language that has one here, by its code."""


def nearest_languages(name: str) -> list[str]:
    """Return the codes whose names are like a text, the likest first; those of Chinese and English where none is."""
    near = difflib.get_close_matches(" ".join(_parts(name)), _CODE_OF_NAME, n=4)
    return list(dict.fromkeys(_CODE_OF_NAME[each] for each in near)) or ["zh", "en"]


@lru_cache(_MOST_CODES)
def language_key(code: str) -> str:
    """Return the identity of a language: equal for ``zh``, ``ZH_cn``, ``zho_Hans``, ``cmn-Hans-SG`` and ``Chinese``.

    It is the shortest code of the language, with the script where that is not the usual one: ``zh-Hant``. Any other
    text is itself, apart from case, width and separators.
    """
    parts = _parts(language_named(code) or code) or [""]
    language, *subtags = parts
    if subtags and language in ("zh", "zho", "chi") and len(subtags[0]) == 3 and subtags[0].isalpha():
        # An extended subtag of Chinese: zh-yue is yue.
        language, *subtags = ["zh", *subtags] if subtags[0] in ("chs", "cht") else subtags
    is_named = any(len(part) > 4 and part.isalpha() and part not in _SCRIPT_OF_MODIFIER for part in subtags)
    if len(language) > 3 or is_named or not language.isascii():
        return " ".join([language, *subtags])
    name = _LANGUAGE.get(language, language)
    name = _LANGUAGE.get(name, name)
    # Serbo-Croatian is Serbian in Latin script.
    script = "Latn" if language in ("sh", "hbs") else None
    for subtag in subtags:
        if len(subtag) == 4 and subtag.isalpha():
            script = subtag.capitalize()
        else:
            script = script or _SCRIPT_OF_MODIFIER.get(subtag) or _SCRIPT_OF_REGION.get(f"{name}-{subtag.upper()}")
    # Han script that no more is said of, Jpan and Hang are what Chinese, Japanese and Korean are written in.
    is_usual = script in (None, _SCRIPT.get(name, "Latn"), "Hani") or (name, script) in (("ja", "Hira"), ("ko", "Hang"))
    return name if is_usual else f"{name}-{script}"


def is_simplified_chinese(code: str) -> bool:
    """Return whether a code or name says that it is Chinese in simplified script, which ``zh`` alone does not."""
    if language_key(code) != "zh":
        return False
    parts = [*_parts(code), *_parts(language_named(code) or "")]
    return any(part in ("hans", "cn", "sg", "my", "chs") or _QUALIFIERS.get(part) == "Hans" for part in parts)


_RIGHT_TO_LEFT = ("Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Syrc", "Thaa")
_SCRIPT_NAMES = {
    "Hans": "Simplified {}", "Hant": "Traditional {}", "Latn": "{} in Latin script", "Cyrl": "{} in Cyrillic script",
    "Arab": "{} in Arabic script", "Deva": "{} in Devanagari",
}  # fmt: skip


def english_name(code: str) -> str | None:
    """Return the English name of a code's language; null for an unknown one.

    The script is named where it is not the usual one, and that of Chinese wherever the code tells it.
    """
    language, _, script = language_key(code).partition("-")
    name = LANGUAGE_NAMES.get(language)
    script = "Hans" if is_simplified_chinese(code) else script
    return None if name is None else _SCRIPT_NAMES.get(script, "{}").format(name)


def language_part(code: str | None) -> str:
    """Return the identity of a code's language without its script; empty without a code."""
    return language_key(code or "").partition("-")[0]


def writing_direction(code: str | None) -> str:
    """Return ``rtl`` or ``ltr`` by the script of a language; ``auto`` where that is unknown."""
    script = script_code(code) if code else None
    if script is None:
        return "auto"
    return "rtl" if script in _RIGHT_TO_LEFT else "ltr"


def script_code(code: str) -> str | None:
    """Return the ISO 15924 code of a language's script, null if unknown: ``Hant`` for ``zh-TW``."""
    language, _, script = language_key(code).partition("-")
    return script or _SCRIPT.get(language) or ("Latn" if language in _KNOWN else None)
