"""The identity of a language code: which spellings of ISO 639, BCP 47 and FLORES-200 name one language.

Codes differ in case and separators, in two or three letters (bibliographic and terminological), in a region, and in a
script that the language is written in anyway. Deprecated codes and the standard member of a macrolanguage (``cmn``,
``arb``) count as the language. A language in another script stays another one: Traditional Chinese, Serbian in Latin.
The sources are the code tables of ISO 639 and the likely subtags of the Unicode CLDR.
"""

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
_SCRIPT_OF_MODIFIER = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva", "arabic": "Arab"}

_LANGUAGE = {name: code for entry in _CODES.split() for code, names in [entry.split(":")] for name in names.split(",")}
_LANGUAGE |= {code: same for code, _, same in (entry.partition(":") for entry in _SAME.split())}
_SCRIPT = {code: script for script, codes in _WRITTEN_IN.items() for code in codes.split()}


@lru_cache(_MOST_CODES)
def language_key(code: str) -> str:
    """Return the identity of a language code: equal for ``zh``, ``ZH_cn``, ``zho_Hans`` and ``cmn-Hans-SG``.

    It is the shortest code of the language, with the script where that is not the usual one: ``zh-Hant``. Any other
    text is itself, apart from case, width and separators.
    """
    plain = unicodedata.normalize("NFKC", code).casefold()
    parts: list[str] = re.findall(r"[^\W_]+", plain) or [""]
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


def language_part(code: str | None) -> str:
    """Return the identity of a code's language without its script; empty without a code."""
    return language_key(code or "").partition("-")[0]
