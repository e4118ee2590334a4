from steelyard.core.types import Case, Message, Prompt, Rating, Response
from steelyard.io.terminal_text import plain
from steelyard.report.item_texts import prompt_lines, response_lines
from steelyard.report.opened import open_case
from strategies import case


def texts(lines):
    return [plain(line) for line in lines]


def test_the_conversation_stands_turn_by_turn_with_the_reference():
    turns = (Message(role="system", content=""), Message(role="user", content="[bold]你好\x07"))
    prompt = Prompt(id="p", messages=turns, reference="世界")
    assert texts(prompt_lines(Case(prompt=prompt, responses=()), 40)) == [
        "", "PROMPT", "  system:", "    (empty)", "  user:", "    [bold]你好␇", "", "REFERENCE", "    世界",
    ]  # fmt: skip


def test_an_answer_has_its_id_tier_author_ratings_and_text():
    rating = Rating(
        response="a",
        rater="ann",
        kind="human",
        dimension="help",
        value=4,
        range=(1, 5),
        spans=((0, 2, "minor", "why"),),
    )
    unranged = Rating(response="a", rater="bob", kind="llm", dimension="style", value=0.5)
    responses = (
        Response(id="a", text="one two", author="gpt"),
        Response(id="b", messages=(Message(role="assistant", content="hi"), Message(role="user", content="ho"))),
        Response(id="c", text=""),
    )
    one = Case(prompt=case().prompt, responses=responses, ratings=(rating, unranged), ranking=(("b",), ("a",)))
    assert texts(response_lines(open_case(one), 70, beside=[["score 1"], [], []])) == [
        "",
        "RESPONSES",
        "",
        "A  id a · tier 2 · by gpt · score 1",
        "  rated help 4 of 1 to 5 · ann (human) · minor at 0 to 2 (why)",
        "  rated style 0.5 · bob (llm)",
        "    one two",
        "",
        "B  id b · tier 1",
        "  assistant:",
        "    hi",
        "  user:",
        "    ho",
        "",
        "C  id c · not ranked",
        "    (empty)",
    ]


def test_a_case_without_answers_says_so():
    assert texts(response_lines(open_case(case(responses="")), 40, beside=[])) == ["", "RESPONSES", "  none"]


def test_remarks_hang_behind_the_label_where_it_is_narrow():
    found = texts(response_lines(open_case(case(responses="a")), 20, beside=[["evaluated/scores 1.25"]]))
    assert found[3:] == ["A  id a", "   evaluated/scores", "   1.25", "    answer a"]
