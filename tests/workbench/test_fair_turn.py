"""The fair turn: a number of threads at a time, in the order in which they came, and handed on after an error."""

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


def test_several_places_are_all_used_and_never_more():
    turn, inside, most = FairTurn(3), set(), []
    everybody = threading.Barrier(3, timeout=60)

    def work(number):
        for _ in range(50):
            with turn.taken():
                inside.add(number)
                most.append(len(inside))
                inside.discard(number)

    def meet():
        # Three threads get here only if three have a place.
        with turn.taken():
            everybody.wait()

    for works in (
        [threading.Thread(target=meet) for _ in range(6)],
        [threading.Thread(target=work, args=(n,)) for n in range(8)],
    ):
        for thread in works:
            thread.start()
        for thread in works:
            thread.join()
    assert len(most) == 400
    assert max(most) <= 3


def test_who_has_waited_long_enough_goes_without_a_place():
    turn, gone = FairTurn(patience=0.01), threading.Event()

    def work():
        with turn.taken():
            gone.set()

    with turn.taken():
        thread = threading.Thread(target=work)
        thread.start()
        assert gone.wait(60)
        thread.join()
        # The place is still this thread's: somebody without one has handed none on.
        assert turn.num_waiting == 0
        other = FairTurn(patience=0.0)
        with other.taken(), other.taken():
            pass
        with other.taken():
            pass
    with turn.taken():
        pass
