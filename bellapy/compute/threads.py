"""Threads for compiled kernels, which release the GIL."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Generic, TypeVar

import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_threads(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """Results of `function` on every item, in the order of the items, by at most `threads` threads.

    The caller's thread is one of them.  So a call never waits for helpers that have other work, as calls from helpers may
    have to.
    """
    items = list(items)
    if threads <= 1 or len(items) <= 1:
        return [function(item) for item in items]
    shared, helping = _Shared(function, items), list[Future[None]]()
    try:
        while len(helping) < min(threads, len(items)) - 1 and not shared.is_taken:
            helping.append(_helpers().submit(shared.work))
        shared.work()
    finally:
        for helper in helping:
            if not helper.cancel():
                helper.result()
    return shared.results()


@cache
def _helpers() -> ThreadPoolExecutor:
    """Threads that wait for work: to start them for each of many short pieces of work would take longer than the work."""
    return ThreadPoolExecutor(usable_cores(), "helping")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # a child has none of its parent's threads


class _Shared(Generic[Item, Result]):
    """Items of which several threads take one after the other."""

    def __init__(self, function: Callable[[Item], Result], items: list[Item]):
        self._function, self._items = function, items
        self._left = deque(range(len(items)))
        self._made: dict[int, Result] = {}
        self._errors: dict[int, BaseException] = {}

    @property
    def is_taken(self) -> bool:
        """Whether no item is left to take."""
        return not self._left

    def work(self) -> None:
        """Take items until none is left, or one has failed."""
        while not self._errors:
            try:
                number = self._left.popleft()
            except IndexError:
                return
            try:
                self._made[number] = self._function(self._items[number])
            except BaseException as error:
                self._errors[number] = error

    def results(self) -> list[Result]:
        """Those of all items, in order, when all threads are done; raises the error of the first item that failed."""
        if self._errors:
            error, self._errors = self._errors[min(self._errors)], {}
            try:
                raise error
            finally:
                del error  # which would keep what its frames refer to
        return [self._made[number] for number in range(len(self._items))]


def map_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int, begun_ahead: int = 2
) -> Iterator[Result]:
    """Like `map_threads`, for items that come one by one: few results wait to be used.

    begun_ahead : items for each thread, begun or waiting, behind the one whose result is next.  Where some items take much
        longer than others, threads wait for these if there are only a few.
    """
    if threads <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        begun: deque[Future[Result]] = deque()
        for item in items:
            begun.append(pool.submit(function, item))
            if len(begun) > begun_ahead * threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def made_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items; the next one is made in another thread while the last one is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def consume_ahead(items: Iterable[Item], use: Callable[[Item], object], threads: int) -> None:
    """Call `use` on every item in order; with more than one thread, while the next item is made."""
    if threads <= 1:
        for item in items:
            use(item)
        return
    with ThreadPoolExecutor(1) as pool:
        last = None
        for item in items:
            if last:
                last.result()
            last = pool.submit(use, item)
        if last:
            last.result()


def shared_by(threads: int) -> Callable[[Callable[[tuple[int, int]], object], int], object]:
    """What calls a function with the begin and end of parts of range(n), by so many threads."""
    return lambda function, n: map_threads(function, even_ranges(n, threads), threads)


def even_ranges(n: int, parts: int) -> list[tuple[int, int]]:
    """Cut range(n) into at most `parts` consecutive non-empty pieces of nearly equal length."""
    edges = np.linspace(0, n, min(parts, n) + 1).astype(np.int64).tolist()
    return [(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True) if b > a]
