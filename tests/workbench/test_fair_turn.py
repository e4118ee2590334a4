"""The fair turn: one thread at a time, in the order in which they came, and handed on after an error."""

import threading

import pytest

from steelyard.workbench.storage.database import FairTurn


def test_threads_go_in_the_order_in_which_they_came():
    turn, order = FairTurn(), []

    def work(number):
        with turn.taken():
            order.append(number)

    threads = []
    with turn.taken():
        for number in range(10):
            thread = threading.Thread(target=work, args=(number,))
            thread.start()
            threads.append(thread)
            # The next one comes only when this one waits.
            while turn.num_waiting <= number:
                thread.join(0.001)
        assert order == []
    for thread in threads:
        thread.join()
    assert order == list(range(10))


def test_one_thread_at_a_time_has_the_turn():
    turn, inside, most = FairTurn(), [], []

    def work():
        for _ in range(200):
            with turn.taken():
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 1600
    assert set(most) == {1}


def test_an_error_hands_the_turn_on():
    turn = FairTurn()

    def fail():
        with turn.taken():
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fail()
    with turn.taken():
        assert turn.num_waiting == 0
