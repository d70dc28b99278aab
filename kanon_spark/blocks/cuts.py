"""Cut the signatures into blocks so that whatever lies across a cut is dear anyway.

A block is cut only between the children of one tree node u of one QI: a group with members on both sides has to
publish u or something higher, so it costs at least the loss of u. The least such loss on a block's way down is its
*crossing loss*: every group cheaper than that lies wholly inside one block, and a greedy that closes only those closes
exactly the classes that the whole table would. The dearest cut is taken first (roots cost most), among equals the one
whose largest part is smallest. A block that is still too big is cut alone, deeper in the trees, at a lower crossing
loss of its own.

The cuts are found from counts of coarse cells, never from the signatures themselves, so the driver holds at most
`CELL_LIMIT` cells however large the table is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kanon_spark.kernels.problem import Forest
from kanon_spark.signatures.layout import Layout

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

CELL_LIMIT = 1_000_000


@dataclass(frozen=True)
class Split:
    """One cut: QI `qi` is divided between the children of `node`; child c covers codes below bounds[c]."""

    qi: int
    node: int
    bounds: Ints
    targets: tuple[int, ...]  # per child: index of the next split if >= 0, else ~block


@dataclass
class Block:
    """A leaf of the cutting: where it lies in each QI, what it holds, and the least loss of a group that leaves it."""

    frontier: tuple[int, ...]
    size: int
    crossing: float
    cut_at: tuple[tuple[int, float], ...] = ()  # (QI, loss) of every cut on the way down


@dataclass(frozen=True)
class CellRequest:
    """Which cells to count next: for each oversized block, the QIs to look at and the node each is at."""

    blocks: tuple[int, ...]
    frontiers: tuple[tuple[int, ...], ...]
    columns: tuple[tuple[int, ...], ...]


Cells = dict[int, tuple[Ints, Longs]]  # block -> (cells by its columns: child indices, signatures in each cell)


@dataclass
class Cuts:
    """All cuts of a table: a small tree of splits, evaluated with numpy on any batch of signatures."""

    forest: Forest
    splits: list[Split] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    root: int = -1  # ~0: everything is block 0

    def assign(self, codes: Ints) -> Ints:
        """Block of each signature (compact codes, signatures by QIs)."""
        out = np.zeros(codes.shape[0], dtype=np.int32)
        todo = [(self.root, np.arange(codes.shape[0]))]
        while todo:
            at, index = todo.pop()
            if at < 0:
                out[index] = ~at
                continue
            split = self.splits[at]
            side = np.searchsorted(split.bounds, codes[index, split.qi], side="right")
            for child in np.unique(side):
                todo.append((split.targets[child], index[side == child]))
        return out

    def crossing_of(self, block: int, counted: frozenset[int]) -> float:
        """Crossing loss of a block where only the counted QIs cost anything."""
        return min((loss if qi in counted else 0.0 for qi, loss in self.blocks[block].cut_at), default=np.inf)

    @property
    def crossing(self) -> NDArray[np.float64]:
        """Crossing loss of each block."""
        return np.array([block.crossing for block in self.blocks])

    def bins(self, size: int) -> Ints:
        """Pack blocks into bins of up to `size` signatures: a task takes a bin, so small blocks cost no overhead."""
        out = np.zeros(len(self.blocks), dtype=np.int32)
        current, held = 0, 0
        for index in self._neighbours():
            block = self.blocks[index]
            if held and held + block.size > size:
                current, held = current + 1, 0
            out[index] = current
            held += block.size
        return out

    def _neighbours(self) -> list[int]:
        """The blocks in the order of the cuts, so that what was divided last stands together."""
        found: dict[int, None] = {}
        todo = [self.root]
        while todo:
            at = todo.pop()
            if at < 0:
                found.setdefault(~at)
            else:
                todo.extend(reversed(self.splits[at].targets))
        return list(found)


def children_of(forest: Forest, qi: int, node: int) -> Ints:
    """The children of a node, in code order."""
    first, last = forest.start[qi], forest.start[qi + 1]
    found = np.flatnonzero(forest.parent[first:last] == node) + first
    ordered: Ints = found[np.argsort(forest.lo[found])].astype(np.int32)
    return ordered


def count_cells(codes: Ints, block_of: Ints, request: CellRequest, forest: Forest) -> Cells:
    """Count the requested cells among these signatures (one batch; batches add up)."""
    out: Cells = {}
    for block, frontier, columns in zip(request.blocks, request.frontiers, request.columns, strict=True):
        inside = np.flatnonzero(block_of == block)
        if not len(inside) or not columns:
            continue
        cells = np.empty((len(inside), len(columns)), dtype=np.int32)
        for place, qi in enumerate(columns):
            bounds = forest.hi[children_of(forest, qi, frontier[qi])]
            cells[:, place] = np.searchsorted(bounds, codes[inside, qi], side="right")
        # One packed number per cell: sorting numbers is an order of magnitude faster than sorting rows.
        layout = Layout.of([int(top) + 1 for top in cells.max(axis=0)])
        found, count = np.unique(layout.pack(cells)[:, 0], return_counts=True)
        out[block] = (layout.unpack(found.reshape(-1, 1)), count.astype(np.int64))
    return out


def cut_blocks(
    forest: Forest,
    *,
    signatures: int,
    block_size: int,
    count: Callable[[Cuts, CellRequest], Cells],
    last: frozenset[int] = frozenset(),
) -> Cuts:
    """Cut until every block has at most `block_size` signatures.

    Args:
        forest: The pruned trees of the whole table.
        signatures: How many there are.
        block_size: The most a block may hold.
        count: Counts the cells of a request over the whole table, given the cuts so far.
        last: QIs to cut only where no other is left (those an earlier round has cut already).
    """
    roots = tuple(int(forest.start[j + 1]) - 1 for j in range(forest.width))
    cuts = Cuts(forest, blocks=[Block(roots, signatures, np.inf)])
    while True:
        oversized = [i for i, block in enumerate(cuts.blocks) if block.size > block_size]
        request = _request(forest, cuts, oversized)
        if not request.blocks:
            return cuts
        cells = count(cuts, request)
        for block, columns in zip(request.blocks, request.columns, strict=True):
            _cut_one(cuts, block, columns, *cells[block], block_size=block_size, last=last)


def _request(forest: Forest, cuts: Cuts, oversized: list[int]) -> CellRequest:
    share = max(2, CELL_LIMIT // max(1, len(oversized)))
    blocks, frontiers, chosen = [], [], []
    for index in oversized:
        frontier = cuts.blocks[index].frontier
        fan = {j: len(children_of(forest, j, frontier[j])) for j in range(forest.width)}
        columns: list[int] = []
        cells = 1
        for j in sorted((j for j in fan if fan[j] >= 2), key=lambda j: (fan[j], j)):
            if cells * fan[j] <= share or not columns:
                columns.append(j)
                cells *= fan[j]
        if columns:
            blocks.append(index)
            frontiers.append(frontier)
            chosen.append(tuple(sorted(columns)))
    return CellRequest(tuple(blocks), tuple(frontiers), tuple(chosen))


def _cut_one(
    cuts: Cuts,
    block: int,
    columns: tuple[int, ...],
    cells: Ints,
    count: Longs,
    *,
    block_size: int,
    last: frozenset[int],
) -> None:
    """Replace one oversized block by smaller ones, as far as its cells allow."""
    forest = cuts.forest
    origin = cuts.blocks[block]
    reuse = [block]  # the first new block takes the old one's number

    def leaf(frontier: tuple[int, ...], size: int, cut_at: tuple[tuple[int, float], ...]) -> int:
        made = Block(frontier, size, min((loss for _, loss in cut_at), default=np.inf), cut_at)
        if reuse:
            cuts.blocks[reuse.pop()] = made
            return ~block
        cuts.blocks.append(made)
        return ~(len(cuts.blocks) - 1)

    def divide(members: Longs, frontier: tuple[int, ...], cut_at: tuple[tuple[int, float], ...]) -> int:
        size = int(count[members].sum())
        best: tuple[bool, float, int, int] | None = None
        for place, qi in enumerate(columns):
            if frontier[qi] != origin.frontier[qi]:
                continue
            parts = np.bincount(cells[members, place], weights=count[members])
            if np.count_nonzero(parts) == 1:
                # All of it lies under one child: go down there, nothing is cut.
                child = int(children_of(forest, qi, frontier[qi])[int(np.argmax(parts))])
                frontier = (*frontier[:qi], child, *frontier[qi + 1 :])
                continue
            key = (qi in last, -float(forest.loss[frontier[qi]]), int(parts.max()), place)
            best = key if best is None or key < best else best
        if size <= block_size or best is None:
            return leaf(frontier, size, cut_at)
        place = best[3]
        qi = columns[place]
        node = frontier[qi]
        children = children_of(forest, qi, node)
        at = len(cuts.splits)
        cuts.splits.append(Split(qi, node, forest.hi[children].astype(np.int32), ()))
        below = (*cut_at, (qi, float(forest.loss[node])))
        targets = []
        for index, child in enumerate(children):
            inside = members[cells[members, place] == index]
            moved = (*frontier[:qi], int(child), *frontier[qi + 1 :])
            targets.append(divide(inside, moved, below) if len(inside) else ~block)
        cuts.splits[at] = Split(qi, node, cuts.splits[at].bounds, tuple(targets))
        return at

    made = divide(np.arange(len(cells), dtype=np.int64), origin.frontier, origin.cut_at)
    if made < 0:
        return
    # Whoever led to the old block now leads to the new split.
    for index, split in enumerate(cuts.splits):
        if index < made and ~block in split.targets:
            targets = tuple(made if target == ~block else target for target in split.targets)
            cuts.splits[index] = Split(split.qi, split.node, split.bounds, targets)
    if cuts.root == ~block:
        cuts.root = made
