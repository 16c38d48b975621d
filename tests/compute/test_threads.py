"""Results in order, whatever the threads; how many are made ahead; errors of threads."""

from __future__ import annotations

import time
from threading import Event

import pytest

from bellapy.compute.threads import made_ahead, map_in_order


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 4, 60])
def test_results_come_in_order_and_wait_in_bounded_number(threads, n):
    made = []

    def items():
        for i in range(n):
            made.append(i)
            yield i

    def square(i):
        time.sleep(0.002 * (i % 3))
        return i * i

    for used, result in enumerate(map_in_order(square, items(), threads)):
        assert result == used * used
        assert len(made) <= used + 2 * threads + 1
    assert len(made) == n


def test_others_are_done_while_the_first_one_takes_long():
    done = Event()

    def work(i):
        if i == 9:
            done.set()
        return i if i else done.wait(10)

    assert list(map_in_order(work, range(10), 2, 5)) == [True, *range(1, 10)]


def test_the_next_item_is_made_while_one_is_used():
    made = [Event() for _ in range(3)]

    def items():
        for i, event in enumerate(made):
            event.set()
            yield i

    for i in made_ahead(items()):
        assert made[min(i + 1, 2)].wait(10)
    assert list(made_ahead(iter(()))) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_reach_the_caller(threads):
    def fail(i):
        if i == 4:
            raise KeyError(i)
        return i

    got = []
    with pytest.raises(KeyError):
        for result in map_in_order(fail, made_ahead(iter(range(9))), threads):
            got.append(result)
    assert got == [0, 1, 2, 3]
    with pytest.raises(KeyError):
        list(made_ahead(map(fail, range(9))))
