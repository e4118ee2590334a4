from steelyard.core.types import Judgment
from steelyard.evaluation.tables import language_word, word
from steelyard.judging.judge_card import JudgeCards, judge_cards
from steelyard.report.judge_cards import card_panels, card_sentences
from strategies import case


def cards():
    def labelled(index, people, judge):
        verdicts = (("people", "human", people, None), ("llm", "llm", judge, ("a", "b")))
        return case(
            f"q{index}",
            "ab",
            text=f"问题 {index}",
            language=("zh", "en")[index % 2],
            judgments=[
                Judgment(left="a", right="b", verdict=verdict, judge=name, kind=kind, shown=shown)
                for name, kind, verdict, shown in verdicts
            ],
        )

    cases = [labelled(index, "left" if index % 3 else "right", "left" if index % 4 else "right") for index in range(60)]
    return judge_cards(cases, cases)


def test_the_tables_have_the_judge_its_languages_and_its_biases():
    agreement, effective, biases = card_panels(cards())
    (table,) = (grouped.table for grouped in agreement.tables)
    # Equal labels: neither or both are multiples of 3 and 4: 60 - 20 - 15 + 2 * 5.
    assert agreement.tables[0].by == "llm"
    assert table.rows[0][:3] == (word("all"), "60", "58.3%")
    assert [row[0] for row in table.rows[1:]] == [language_word("en"), language_word("zh")]
    assert agreement.tables[0].table.columns.count(word("interval")) == 3
    titles = ("group", "pairs", "card_correlation", "interval", "card_effective_labels", "interval")
    assert effective.tables[0].table.columns == tuple(map(word, titles))
    (rows,) = (grouped.table.rows for grouped in biases.tables)
    # 45 of 60 verdicts for a, which is always first.
    assert rows[0][2] == "75.0%"
    (sentence,) = card_sentences(cards())
    assert sentence.values["agreement"] == "58.3%"


def test_no_shared_pair_has_no_panel():
    nothing = JudgeCards(num_prompts=0, num_pairs=0, cards=())
    assert list(card_panels(nothing)) == []
    assert [sentence.key for sentence in card_sentences(nothing)] == ["say_no_card"]
