from format_rows import read, write

ROW = {
    "instruction": "译",
    "input": "Hello",
    "chosen": "你好",
    "rejected": "再见",
    "system": "s",
    "history": [["u", "a"]],
}


def test_system_history_and_input_are_turns_and_come_back():
    (one,), _ = read("llamafactory_alpaca", ROW)
    assert [(turn.role, turn.content) for turn in one.prompt.messages] == [
        ("system", "s"), ("user", "u"), ("assistant", "a"), ("user", "译\nHello"),
    ]  # fmt: skip
    assert write("llamafactory_alpaca", one)[0] == [ROW]


def test_absent_keys_stay_absent():
    row = {"instruction": "i", "chosen": "a", "rejected": "b"}
    assert write("llamafactory_alpaca", *read("llamafactory_alpaca", row)[0])[0] == [row]
