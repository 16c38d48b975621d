"""Partial-order alignment from its definition, in plain Python: full tables over dictionaries."""

from __future__ import annotations

from dataclasses import dataclass, field

UNKNOWN = 4


@dataclass
class Graph:
    """columns : lists {base: node}, in order.  edges : {head: {tail: weight}}, the older first."""

    columns: list = field(default_factory=list)
    base: list = field(default_factory=list)
    edges: dict = field(default_factory=dict)

    def column_of(self, node):
        return next(i for i, column in enumerate(self.columns) if node in column.values())

    def order(self):
        return [column[base] for column in self.columns for base in sorted(column)]

    def add(self, sequence, mates):
        at, before = -1, None
        for base, mate in zip(sequence, mates, strict=True):
            if mate is None:
                at += 1
                self.columns.insert(at, {})
            else:
                at = self.column_of(mate)
            if base not in self.columns[at]:
                self.columns[at][base] = len(self.base)
                self.base.append(base)
                self.edges[self.columns[at][base]] = {}
            node = self.columns[at][base]
            if before is not None:
                self.edges[node][before] = self.edges[node].get(before, 0) + 1
            before = node

    def ends(self):
        tails = {tail for edges in self.edges.values() for tail in edges}
        return [node for node in self.order() if node not in tails]


def align(graph, sequence, match, mismatch, gap):
    """The best score from end to end, and the node that each base is aligned with."""
    table = {None: [j * gap for j in range(len(sequence) + 1)]}

    def pair(node, j):
        return match if graph.base[node] == sequence[j - 1] != UNKNOWN else mismatch

    for node in graph.order():
        row = table[node] = []
        for j in range(len(sequence) + 1):
            ways = [row[j - 1] + gap] if j else []
            for tail in graph.edges[node] or [None]:
                ways.append(table[tail][j] + gap)
                if j:
                    ways.append(table[tail][j - 1] + pair(node, j))
            row.append(max(ways))
    score = max(table[node][-1] for node in graph.ends())
    node = next(node for node in graph.ends() if table[node][-1] == score)
    mates, j = [None] * len(sequence), len(sequence)
    while j:
        if node is None:
            break
        here, tails = table[node][j], list(graph.edges[node]) or [None]
        paired = [tail for tail in tails if table[tail][j - 1] + pair(node, j) == here]
        if paired:
            mates[j - 1] = node
            node, j = paired[0], j - 1
        elif table[node][j - 1] + gap == here:
            j -= 1
        else:
            node = next(tail for tail in tails if table[tail][j] + gap == here)
    return score, mates


def heaviest_bundle(graph):
    """The consensus, after Lee 2003."""
    order = graph.order()
    rank = {node: r for r, node in enumerate(order)}
    score, before = {}, {}

    def score_from(first):
        for node in order[first:]:
            score[node], before[node] = -1 if first else 0, None
            known = [(weight, score[tail], i, tail) for i, (tail, weight) in enumerate(graph.edges[node].items())]
            known = [way for way in known if way[1] >= 0]
            if known:
                weight, _, _, before[node] = max(known)
                score[node] = weight + score[before[node]]
        highest = max(score[node] for node in order[first:])
        return next(node for node in order[first:] if score[node] == highest)

    if not order:
        return []
    node = score_from(0)
    while node not in graph.ends():
        for edges in graph.edges.values():
            if node in edges:
                for tail in edges:
                    if tail != node:
                        score[tail] = -1
        node = score_from(rank[node] + 1)
    path = []
    while node is not None:
        path.append(graph.base[node])
        node = before[node]
    return path[::-1]


def window(sequences, match, mismatch, gap):
    """Consensus, scores of all sequences, the graph."""
    graph, scores = Graph(), []
    for sequence in sequences:
        score, mates = 0, [None] * len(sequence)
        if graph.base and len(sequence):
            score, mates = align(graph, sequence, match, mismatch, gap)
        scores.append(score)
        graph.add(sequence, mates)
    return heaviest_bundle(graph), scores, graph
