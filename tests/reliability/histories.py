# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that a history of transactions could have happened one after the other, as Elle does with lists.

Transactions append values, each of which is unique, to lists, and read lists. So the last state of a list tells the order of
its versions, and each read tells which version it saw. From these follow the dependencies of two transactions:

    ww  the second appended next after the first
    wr  the second read the version that the first wrote
    rw  the first read the version that the second replaced

A cycle of dependencies is an anomaly. G0 consists of ww alone, G1c of ww and wr, G-single has one rw, G2 several. G1a is a
read of a value that was rolled back, G1b one of a version that its writer replaced. The names are those of Adya and of Elle.
"""
import dataclasses
from collections import defaultdict

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
WW, WR, RW = "ww", "wr", "rw"


@dataclasses.dataclass
class Transaction:
    """`steps`: ("append", key, value), ("read", key, list of values), in their order. An append that was not answered is
    one; such a read is not. FAILED: nothing was committed, for certain."""

    number: int
    steps: list
    outcome: str = OK


class History:
    def __init__(self, transactions, last):
        """`last`: the last list of each key that has one."""
        self.last = last
        self.found = []  # (name, text)
        self.edges = defaultdict(set)  # (number, number): kinds
        self.writers = {
            (key, value): t for t in transactions for what, key, value in t.steps if what == "append"
        }  # fmt: skip
        seen = {(key, value) for key, values in last.items() for value in values}
        # An unknown one is committed if one of its values is there.
        self.committed = [
            t for t in transactions
            if t.outcome == OK or (t.outcome == UNKNOWN and any((k, v) in seen for w, k, v in t.steps if w == "append"))
        ]  # fmt: skip
        self.numbers = {t.number for t in self.committed}

    def _find(self, name, text):
        self.found.append((name, text))

    def check(self):
        """Returns the anomalies: pairs of a name and a text."""
        self._check_last()
        for t in self.committed:
            self._check_appends(t)
            self._check_reads(t)
        self._check_lost_updates()
        self._add_writes()
        self._find_cycles()
        return self.found

    # ---- values ----

    def _check_last(self):
        for key, values in self.last.items():
            if len(set(values)) < len(values):
                self._find("duplicate", f"list {key} has a value twice: {values}")
            for value in values:
                self._check_writer(None, key, value)

    def _check_writer(self, reader, key, value):
        writer = self.writers.get((key, value))
        if not writer:
            self._find("garbage", f"{value} in list {key} was never appended")
        elif writer.number not in self.numbers and writer is not reader:
            self._find("G1a", f"{value} in list {key} is of {writer.number}, which was rolled back")

    def _check_appends(self, t):
        for what, key, value in t.steps:
            if what == "append" and value not in self.last.get(key, ()):
                self._find("lost append", f"{t.number} was committed, and {value} is not in list {key}")

    def _check_reads(self, t):
        own = defaultdict(list)
        for what, key, value in t.steps:
            if what == "append":
                own[key].append(value)
            else:
                self._check_read(t, key, value, own[key])

    def _check_read(self, t, key, values, own):
        foreign = values[: len(values) - len(own)]
        if values[len(foreign) :] != own:
            self._find("internal", f"{t.number} read {values} in list {key} after it had appended {own}")
            return
        for value in values:
            self._check_writer(t, key, value)
        whole = self.last.get(key, [])
        if whole[: len(values)] != values:
            self._find("incompatible order", f"{t.number} read {values} in list {key}, which became {whole}")
            return
        if foreign:
            self._check_intermediate(t, key, foreign[-1])
            self._add(self.writers.get((key, foreign[-1])), t, WR)
        if len(values) < len(whole):
            self._add(t, self.writers.get((key, whole[len(values)])), RW)

    def _check_intermediate(self, t, key, value):
        writer = self.writers.get((key, value))
        appended = [v for what, k, v in writer.steps if what == "append" and k == key] if writer else []
        if appended and writer is not t and appended[-1] != value:
            self._find("G1b", f"{t.number} read {value} last in list {key}, but {writer.number} appended more")

    def _check_lost_updates(self):
        readers = defaultdict(set)
        for t in self.committed:
            read = {}
            for what, key, value in t.steps:
                if what == "read":
                    read.setdefault(key, len(value))
                elif key in read:
                    readers[key, read[key]].add(t.number)
        for (key, size), numbers in readers.items():
            if len(numbers) > 1:
                self._find("lost update", f"{sorted(numbers)} read list {key} with {size} values, then appended to it")

    # ---- dependencies ----

    def _add(self, first, second, kind):
        if first and second and first is not second and {first.number, second.number} <= self.numbers:
            self.edges[first.number, second.number].add(kind)

    def _add_writes(self):
        for key, values in self.last.items():
            for first, second in zip(values, values[1:]):
                self._add(self.writers.get((key, first)), self.writers.get((key, second)), WW)

    def _graph(self, kinds):
        graph = defaultdict(list)
        for (first, second), its in self.edges.items():
            if its & kinds:
                graph[first].append(second)
        return graph

    def _find_cycles(self):
        for name, kinds in (("G0", {WW}), ("G1c", {WW, WR})):
            for cycle in components(self._graph(kinds)):
                self._find(name, f"a cycle of {sorted(cycle)}")
                return
        dependencies = self._graph({WW, WR})
        for cycle in components(self._graph({WW, WR, RW})):
            single = any(
                RW in kinds and first in cycle and second in cycle and reaches(dependencies, second, first)
                for (first, second), kinds in self.edges.items()
            )
            self._find("G-single" if single else "G2", f"a cycle of {sorted(cycle)}")


def reaches(graph, start, goal):
    seen, todo = {start}, [start]
    while todo:
        node = todo.pop()
        if node == goal:
            return True
        for other in graph.get(node, ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return False


def components(graph):
    """The strongly connected components of more than one node, by Tarjan's algorithm without recursion."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in list(graph):
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, others = work[-1]
            other = next(others, None)
            if other is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    component = set(stack[at:])
                    del stack[at:]
                    on_stack -= component
                    if len(component) > 1:
                        found.append(component)
            elif other not in index:
                index[other] = low[other] = len(index)
                stack.append(other)
                on_stack.add(other)
                work.append((other, iter(graph.get(other, ()))))
            elif other in on_stack:
                low[node] = min(low[node], index[other])
    return found
