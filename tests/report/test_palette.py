"""Every colour of text reaches a contrast of 4.5 with what it stands on, in both themes and in print (WCAG 2, AA)."""

import re

import pytest

from steelyard.report.page import read_template

TEXT = ("ink", "muted", "accent", "brass", "alert", "good", "series-1", "series-2", "series-3", "series-4")
GROUND = ("paper", "panel")
SOFT = (("ink", "accent-soft"), ("ink", "brass-soft"), ("ink", "alert-soft"), ("paper", "accent"))
MARKS = ("baseline",)


def themes():
    """The variables of each block of colours: light, dark by the system, dark by the switch, print."""
    style = read_template("page.css") + read_template("downloads.css")
    blocks = re.findall(r"\{([^{}]*--paper:[^{}]*)\}", style)
    return [dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{3,6})\b", block)) for block in blocks]


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_of_black_and_white_is_21():
    assert contrast("#000000", "#fff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_the_two_dark_themes_are_one():
    light, dark, switched, printed = themes()
    assert dark == switched
    assert set(light) == set(dark) == set(printed) - {"shadow"}


@pytest.mark.parametrize("number", range(4))
def test_text_is_readable_on_its_ground(number):
    colours = themes()[number]
    pairs = [(text, ground) for text in TEXT for ground in GROUND] + list(SOFT)
    low = {pair: round(contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs}
    assert {pair: value for pair, value in low.items() if value < 4.5} == {}
    assert all(contrast(colours[mark], colours[ground]) >= 3 for mark in MARKS for ground in GROUND)
