"""The status of a run, read from its folder while another process writes it and after it stopped."""

import pytest

from chat_server import chatting
from steelyard.core.errors import CeilingError, FileError
from steelyard.io.cases import write_cases
from steelyard.io.progress import bar
from steelyard.io.run_state import recorded_state
from steelyard.judging.run_status import status_of
from steelyard.stages.judge import Config, judge
from steelyard.stages.judge import forecast as forecast_judging
from steelyard.stages.judge import status as judging_status
from strategies import case


def test_the_cost_to_come_is_that_of_the_replies_so_far(tmp_path):
    with recorded_state(tmp_path), bar("asking m", 40) as shown:
        figures = {"replies": 10.0, "failed": 2.0, "prompt_tokens": 700.0, "reply_tokens": 30.0, "cost": 0.5}
        shown.advance(12, figures=figures)
        with bar("asking n", 40):
            pass
    # The state is removed at the end of a block that succeeds.
    with pytest.raises(FileError, match="there is no run here"):
        status_of(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tmp_path, figures)
    status = status_of(tmp_path)
    assert (status.state, status.ends) == ("interrupted", None)
    (model,) = status.models
    assert (model.model, model.num_done, model.num_requests, model.num_failed) == ("m", 12, 40, 2)
    assert (model.prompt_tokens, model.reply_tokens, model.cost) == (700, 30, 0.5)
    assert model.cost_to_come == pytest.approx(28 * 0.5 / 10)


def _interrupted(folder, figures):
    with recorded_state(folder), bar("asking m", 40) as shown:
        shown.advance(12, figures=figures)
        raise KeyboardInterrupt


def test_equal_requests_are_forecast_and_sent_once(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case(f"p{number}", "ab", text="same") for number in range(30)])
    with chatting("[[8]]") as server:
        config = Config(task="ratings", chat={"base_url": server.url, "model": "m"}, price=(1000.0, 10000.0))
        before = forecast_judging(tmp_path / "c.jsonl", tmp_path / "out", config).models[0]
        judge(tmp_path / "c.jsonl", tmp_path / "out", config)
        assert len(server.questions) == before.num_requests == 2
    assert before.num_repeated == 58


def test_a_run_that_stopped_says_why_and_a_finished_one_that_it_is(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case(f"p{number}", "abc", text=f"{number}?") for number in range(30)])
    cases, out = tmp_path / "c.jsonl", tmp_path / "out"
    with chatting("[[A]]") as server:
        config = Config(chat={"base_url": server.url, "model": "m"}, price=(1000.0, 10000.0), num_resamples=20)
        before = forecast_judging(cases, out, config)
        assert not out.exists()
        assert server.questions == []
        with pytest.raises(CeilingError):
            judge(cases, out, config, max_cost=2.0)
        stopped = judging_status(out).status
        assert stopped.state == "failed"
        assert "max_cost=2 is reached" in stopped.problem
        asked = len(server.questions)
        rest = forecast_judging(cases, out, config)
        assert len(server.questions) == asked
        judge(cases, out, config)
        assert len(server.questions) == 180
        assert judging_status(out).status.state == "finished"
    assert (before.num_cases, before.num_used, before.models[0].num_requests) == (30, 30, 180)
    # The replies so far count 7 and 3 tokens each, and so do those that are forecast.
    forecast = rest.models[0]
    assert (forecast.num_answered, forecast.num_requests) == (asked, 180 - asked)
    assert forecast.reply_tokens == 3 * forecast.num_requests
    assert forecast.hours is not None
