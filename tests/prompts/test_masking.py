"""Private data are masked wherever the case has them, and spans stay on the words that they mark."""

from steelyard.core.types import Case, Judgment, Message, Prompt, Rating, Response
from steelyard.prompts.masking import masked_case, num_changed
from steelyard.prompts.screening import ScreeningConfig, screen_prompts
from steelyard.translation.screening import find_language_bound

MAIL, PHONE = "li.wei@corp.cn", "+44 20 7946 0958"
TEXT = f"Write to {MAIL} or call {PHONE} now."


def spans(text, *words):
    return tuple((text.index(word), text.index(word) + len(word), "error", f"see {MAIL}") for word in words)


def made():
    turns = (Message(role="assistant", content=f"Ask {MAIL}."), Message(role="user", content="And?"))
    several = Response(id="b", messages=(*turns, Message(role="assistant", content=TEXT)), author="m")
    whole = "\n".join(turn.content for turn in several.messages)
    return Case(
        prompt=Prompt(id="p", messages=(Message(role="user", content=f"Is {MAIL} right?"),), language="en"),
        responses=(Response(id="a", text=TEXT, author=MAIL, meta={"raw": [MAIL]}), several, Response(id="c", text="x")),
        judgments=(Judgment(left="a", right="b", verdict="left", judge="j", kind="llm", reason=f"{MAIL} is right"),),
        ratings=(
            Rating(
                response="a", rater="r", kind="human", dimension="d", value=1, spans=spans(TEXT, "call", MAIL, "now")
            ),
            Rating(response="b", rater="r", kind="human", dimension="d", value=1, spans=spans(whole, "And", "now")),
        ),
    )


def mask(case, **actions):
    config = ScreeningConfig(private_data=actions)
    (screened,) = screen_prompts(config, find_language_bound, [case.prompt])
    return masked_case(case, screened, config)


def test_responses_reasons_and_meta_are_masked_like_the_prompt():
    case = made()
    masked = mask(case, e_mail="mask", phone="count")
    assert masked.responses[0].text == f"Write to [E_MAIL] or call {PHONE} now."
    assert masked.responses[1].messages[0].content == "Ask [E_MAIL]."
    assert masked.responses[0].meta == {"raw": ["[E_MAIL]"]}
    assert masked.judgments[0].reason == "[E_MAIL] is right"
    assert masked.responses[0].author == MAIL, "names stay: evidence refers to them"
    assert num_changed(case, masked) == 2


def test_spans_move_with_their_words():
    masked = mask(made(), e_mail="mask", phone="mask")
    text = masked.responses[0].text
    assert text == "Write to [E_MAIL] or call [PHONE] now."
    marked = [text[start:end] for start, end, *_ in masked.ratings[0].spans]
    assert marked == ["call", "[E_MAIL]", "now"]
    assert {reason for *_, reason in masked.ratings[0].spans} == {"see [E_MAIL]"}
    whole = "\n".join(turn.content for turn in masked.responses[1].messages)
    assert [whole[start:end] for start, end, *_ in masked.ratings[1].spans] == ["And", "now"]


def test_a_span_that_ends_inside_a_masked_word_takes_the_whole_mask():
    case = made()
    start = TEXT.index(MAIL) + 3
    rating = Rating(
        response="a",
        rater="r",
        kind="human",
        dimension="d",
        value=1,
        spans=((0, start, "x", None), (start, 40, "x", None)),
    )
    masked = mask(Case(prompt=case.prompt, responses=case.responses, ratings=(rating,)), e_mail="mask")
    text = masked.responses[0].text
    (first, second) = ([start, end] for start, end, *_ in masked.ratings[0].spans)
    assert text[slice(*first)] == "Write to [E_MAIL]"
    assert text[slice(*second)].startswith("[E_MAIL] or")


def test_without_masks_only_the_language_is_filled_in():
    case = made()
    assert mask(case, e_mail="count") == case
