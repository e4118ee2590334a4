"""Brief requests: begun in the order in which they came, a few at a time, and never kept waiting by a long one."""

import asyncio
import threading

import pytest

from steelyard.workbench.routes.fast_routes import FastThreads


def test_work_begins_in_the_order_in_which_it_came():
    begun = []

    async def run():
        threads = FastThreads(1)
        await asyncio.gather(*(threads.run(lambda number=number: begun.append(number)) for number in range(50)))

    asyncio.run(run())
    assert begun == list(range(50))


def test_several_threads_are_all_used_and_never_more():
    inside, most = set(), []
    everybody = threading.Barrier(3, timeout=60)

    def work(number):
        inside.add(number)
        most.append(len(inside))
        inside.discard(number)
        return number

    async def run():
        threads = FastThreads(3)
        # Three get here only if three are at work.
        await asyncio.gather(*(threads.run(everybody.wait) for _ in range(6)))
        return await asyncio.gather(*(threads.run(lambda number=number: work(number)) for number in range(200)))

    assert asyncio.run(run()) == list(range(200))
    assert max(most) <= 3


def test_who_has_waited_long_enough_goes_another_way():
    is_over = threading.Event()

    async def run():
        threads = FastThreads(1, patience=0.01)
        long = asyncio.create_task(threads.run(lambda: is_over.wait(60)))
        # Beside the long one, which has the only thread.
        assert await threads.run(lambda: "served") == "served"
        assert not long.done()
        is_over.set()
        assert await long

    asyncio.run(run())


def test_an_error_reaches_who_waits_for_it():
    def fail():
        raise ZeroDivisionError

    async def run():
        threads = FastThreads(1)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await threads.run(fail)
        assert await threads.run(lambda: "served") == "served"

    asyncio.run(run())
