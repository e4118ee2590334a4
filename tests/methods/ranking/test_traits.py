import zlib

from steelyard.core.types import Message, Response
from steelyard.methods.measures.tallies import MOST_UNITS
from steelyard.methods.ranking.evidence import Only, gather
from steelyard.methods.ranking.traits import Seen, num_characters, unit_of
from strategies import case, judgment, prompt


def test_what_is_seen_as_cases_pass():
    first = case(
        id="一",
        responses="abc",
        judgments=[
            judgment("a>b", shown=("c", "b", "a")),
            judgment("b>c"),
            judgment("a>c", judge="m", kind="llm", shown=("c", "b")),  # a was not among what was shown
        ],
    )
    second = case(id="二", responses="ab", judgments=[judgment("a<b", shown=("a", "b"))])
    seen = Seen()
    assert list(seen.passing([first, second])) == [first, second]
    traits = seen.traits()
    assert traits.num_shown.tolist() == [3, 0, 0, 2]
    assert (traits.left_place[[0, 3]].tolist(), traits.right_place[[0, 3]].tolist()) == ([2, 0], [1, 1])
    assert traits.unit.tolist() == [unit_of("一"), unit_of("二")]
    assert traits.length.tolist() == [len("answer a")] * 5
    assert (traits.author.tolist(), traits.authors) == ([-1] * 5, ())


def test_only_admitted_judgments_are_seen():
    one = case(responses="ab", judgments=[judgment("a>b", shown=("a", "b")), judgment("a>b", judge="m", kind="llm")])
    only = Only(kind=("llm",))
    seen = Seen(only)
    evidence = gather(seen.passing([one]), only)
    assert seen.traits().num_shown.tolist() == [0]
    assert len(evidence.judge) == 1


def test_authors_are_numbered_by_name():
    one = case(responses="ab")
    authored = tuple(
        Response(id=response.id, text="", author=author)
        for response, author in zip(one.responses, ("乙", None), strict=True)
    )
    two = type(one)(prompt=prompt("q"), responses=(*authored, Response(id="x", text="", author="甲")))
    seen = Seen()
    list(seen.passing([one, two]))
    traits = seen.traits()
    assert traits.authors == tuple(sorted(("甲", "乙")))
    assert traits.author.tolist() == [-1, -1, traits.authors.index("乙"), -1, traits.authors.index("甲")]


def test_lengths_count_code_points_of_all_turns():
    assert num_characters(Response(id="a", text="杆秤👩‍👧")) == 5
    turns = (Message(role="assistant", content="שלום"), Message(role="assistant", content="x"))
    assert num_characters(Response(id="a", messages=turns)) == 5


def test_parallel_prompts_are_drawn_together_and_others_spread():
    assert unit_of("p") == zlib.crc32(b"p") % MOST_UNITS
    assert len({unit_of(f"prompt {number}") for number in range(500)}) > 400
