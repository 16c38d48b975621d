"""Threads for compiled kernels, which release the GIL."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_threads(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """Results of `function` on every item, in the order of the items, by at most `threads` threads."""
    items = list(items)
    if threads <= 1 or len(items) <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        return list(pool.map(function, items))


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
