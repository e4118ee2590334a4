from collections import Counter

import msgspec
import pytest

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build
from strategies import case


def completion(rank, text, **other):
    return {"rank": rank, "completion": [{"role": "assistant", "content": text}], **other}


def row(*completions, **other):
    return {"context": [{"role": "user", "content": "问"}], "completions": list(completions), **other}


def test_lower_ranks_are_better_and_equal_ranks_tie():
    (one,), _ = read("nemo_rl", row(completion(1, "b"), completion(0, "a"), completion(1, "c"), task_name="t"))
    texts = {response.id: response.text for response in one.responses}
    assert [[texts[name] for name in tier] for tier in one.ranking] == [["a"], ["b", "c"]]
    assert one.prompt.source == "t"


def test_the_very_ranks_come_back_until_the_ranking_changes():
    given = row(completion(3, "a"), completion(7, "b", model="m"))
    (one,), _ = read("nemo_rl", given)
    assert one.responses[1].meta == {"model": "m"}
    assert write("nemo_rl", one)[0] == [given]
    turned = msgspec.structs.replace(one, ranking=one.ranking[::-1])
    (written,), _ = write("nemo_rl", turned)
    assert [item["rank"] for item in written["completions"]] == [1, 0]


def test_ties_and_all_answers_are_written_and_the_unranked_counted():
    rows, dropped = write("nemo_rl", case(responses="abcd", ranking=(("b", "c"), ("a",))))
    said = [(item["rank"], item["completion"][0]["content"]) for item in rows[0]["completions"]]
    assert said == [(1, "answer a"), (0, "answer b"), (0, "answer c")]
    assert dropped["unranked responses"] == 1
    rows, dropped = write("nemo_rl", case(responses="ab", ranking=None))
    assert (rows, dropped["prompts without a ranking"], dropped["unranked responses"]) == ([], 1, 2)


REFUSED = "rows that NeMo-RL's trainers refuse, for they take two answers of different ranks (pairs=true)"


@pytest.mark.parametrize(
    ("ranking", "number"), [((("a",), ("b",)), 0), ((("a", "b"),), 1), ((("a",), ("b", "c")), 1), ((("a",),), 1)]
)
def test_rows_that_its_trainers_refuse_are_counted(ranking, number):
    assert write("nemo_rl", case(responses="abc", ranking=ranking))[1][REFUSED] == number


def test_pairs_are_rows_that_its_trainers_take():
    dropped = Counter()
    one = case(responses="abcd", ranking=(("b", "c"), ("a",)))
    rows = list(build("formats", "nemo_rl", {"pairs": True}).write([one], dropped))
    said = [[(item["rank"], item["completion"][0]["content"]) for item in row["completions"]] for row in rows]
    assert said == [[(0, "answer b"), (1, "answer a")], [(0, "answer c"), (1, "answer a")]]
    assert (dropped["ties"], dropped["responses in no pair"], dropped[REFUSED]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        (row(), "at completions: no completions"),
        (row(completion(None, "a")), r"at completions\[0\]: a completion without a number"),
        (row(completion(True, "a")), r"at completions\[0\]: a completion without a number"),
        (row(completion(0, "a"), {"rank": 1, "completion": "b"}), r"at completions\[1\]: .* not a list of turns"),
        (row(completion(0, "a")) | {"context": None}, "at context: "),
        (row(completion(0, "a"), task_name=3), "has int under 'task_name'"),
    ],
)
def test_a_row_of_another_form_is_refused_with_its_place(broken, what):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{what}"):
        read("nemo_rl", broken)
