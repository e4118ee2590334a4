from steelyard.methods.reporting.judge_contents import read_agreement, read_authors, read_judges


def test_a_summary_without_the_sections_reads_as_empty():
    assert read_judges({}).by_judge == {}
    assert read_agreement({}).judges == ()
    assert read_authors({"authors": None}).strengths == ()


def test_new_keys_are_passed_over():
    summary = {
        "judges": {"by_kind": {"human": {"num_judgments": 3, "new": 1, "length": {"longer": {"value": 0.5, "n": 2}}}}},
        "authors": {"strengths": [{"author": "甲", "value": 0.5, "low": None, "high": None, "n": 4}], "ties": "half"},
        "agreement": {"judges": [{"judges": ["a", "b"], "kappa": {"value": 0.1, "n": 3}}]},
    }
    human = read_judges(summary).by_kind["human"]
    assert (human.num_judgments, human.length.longer.value) == (3, 0.5)
    assert read_authors(summary).strengths[0].author == "甲"
    assert read_agreement(summary).judges[0].judges == ("a", "b")
