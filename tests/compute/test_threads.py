"""Results in order, whatever the threads; how many are made ahead; errors of threads."""

from __future__ import annotations

import os
import time
from threading import Barrier, Event

import pytest

from bellapy.compute import threads as its_module
from bellapy.compute.threads import made_ahead, map_in_order, map_threads


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


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 4, 60])
def test_shared_items_have_their_results_in_order(threads, n):
    assert map_threads(lambda i: (time.sleep(0.001 * (i % 3)), i * i)[1], range(n), threads) == [i * i for i in range(n)]


@pytest.fixture
def two_helpers(monkeypatch):
    monkeypatch.setattr(its_module, "usable_cores", lambda: 2)
    its_module._helpers.cache_clear()
    yield
    its_module._helpers.cache_clear()


@pytest.mark.usefixtures("two_helpers")
def test_the_caller_works_beside_its_helpers():
    together = Barrier(3, timeout=10)
    assert map_threads(lambda i: together.wait() >= 0, range(3), 3) == [True] * 3


@pytest.mark.usefixtures("two_helpers")
def test_helpers_may_share_items_themselves():
    """Even if none of them is free."""
    assert map_threads(lambda i: sum(map_threads(lambda j: i * j, range(9), 3)), range(9), 3) == [36 * i for i in range(9)]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_item_that_fails_tells(threads):
    done = []

    def work(i):
        time.sleep(0.001)
        done.append(i)
        if i in (5, 7):
            raise KeyError(i)

    with pytest.raises(KeyError, match="5"):
        map_threads(work, range(100), threads)
    assert len(done) < 20, "what was not begun is left"
    assert map_threads(abs, [-1, -2], threads) == [1, 2]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes of this kind")
def test_a_forked_process_has_helpers_of_its_own():
    map_threads(abs, range(4), 4)
    child = os.fork()
    if not child:
        together = Barrier(2, timeout=10)
        try:
            map_threads(lambda i: together.wait(), range(2), 2)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
