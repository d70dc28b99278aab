"""Pruning a classification tree from the bottom up, until every class that is released has at least k persons.

Idea: at a node whose children have become leaves, those with at least k persons are released, and the others are pruned
into the node. If what was pruned has fewer than k persons, it borrows whole signatures from a child that keeps k; if no
child can lend so much, the smallest that has k is pruned as well. The node is then a leaf itself, holding what was
pruned, and its own parent goes on with it. So what reaches the root is what no named value could hide.

    lenders   those with most persons first, then in the order of the cut; the first that can lend does
    loans     signatures of fewest persons first, then in the order of their codes, until k is reached

A loan has at least one person, so the first k signatures of a leaf in that order are all that anyone can ever ask
of it. That makes leaves summaries: a region that was pruned elsewhere is a leaf like any other, and the result is the
same as if all had been pruned in one place.

Cost: each node merges what its children could lend, at most k signatures of each.

Source: kACTUS (see `kactus.py`); there rows are borrowed, here whole signatures, since signatures are not split.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from typing import Any, NamedTuple


class Loan(NamedTuple):
    """A signature that may be lent; `key` tells it from others and orders it by its codes."""

    persons: int
    key: Any


@dataclass(frozen=True)
class Holding:
    """What a leaf holds: what is left of some leaves of the original tree, and what it borrowed.

    Attributes:
        signatures: How many; a leaf without any has disappeared.
        persons: May be 0 where all of them count elsewhere.
        leaves: The leaves of the original tree whose signatures it holds, but for those that others have borrowed.
        borrowed: Keys of the signatures that it has borrowed, in place of their own leaf.
        loans: What it could lend, in order: as much as anyone may ask for, or all there is.
    """

    signatures: int = 0
    persons: int = 0
    leaves: tuple[int, ...] = ()
    borrowed: tuple[Any, ...] = ()
    loans: tuple[Loan, ...] = ()


@dataclass(frozen=True)
class Pruned:
    """What pruning has made of a tree.

    Attributes:
        released: Each class and the node whose path it publishes.
        left: What is left in the root: anything from nothing to everything.
    """

    released: list[tuple[int, Holding]] = field(default_factory=list)
    left: Holding = Holding()


def lendable(loans: Iterable[Loan], k: int) -> tuple[Loan, ...]:
    """What can ever be asked of these signatures."""
    return _first(sorted(loan for loan in loans if loan.persons > 0), k)


def prune(children: Sequence[Sequence[int]], leaves: Mapping[int, Holding], *, k: int) -> Pruned:
    """Prune a tree whose nodes have larger numbers than their parents; node 0 is the root.

    Args:
        children: Of each node, in the order of the cut; none of a leaf.
        leaves: What each leaf holds.
        k: Least persons of a class.
    """
    released: list[tuple[int, Holding]] = []
    held: dict[int, Holding] = {}
    for node in reversed(range(len(children))):
        if not children[node]:
            held[node] = leaves[node]
        else:
            full, held[node] = _prune_node([(child, held.pop(child)) for child in children[node]], k)
            released += full
    return Pruned(released, held[0])


def _prune_node(children: list[tuple[int, Holding]], k: int) -> tuple[list[tuple[int, Holding]], Holding]:
    """The children that are released, and what the node itself is left with."""
    full = [(child, held) for child, held in children if held.persons >= k]
    pruned = _together([held for _, held in children if held.persons < k], k)
    if not pruned.signatures or pruned.persons >= k or not full:
        return full, pruned
    for child, lender in sorted(full, key=lambda each: -each[1].persons):  # stable: ties in the order of the cut
        loans = _first(lender.loans, k - pruned.persons)
        lent = sum(loan.persons for loan in loans)
        if pruned.persons + lent >= k and lender.persons - lent >= k:
            kept = _without(lender, loans)
            return [(each, kept if each == child else held) for each, held in full], _with(pruned, loans, k)
    smallest = min(full, key=lambda each: each[1].persons)
    return [each for each in full if each is not smallest], _together([pruned, smallest[1]], k)


def _first(loans: Iterable[Loan], persons: int) -> tuple[Loan, ...]:
    """As many of the first loans as reach so many persons."""
    taken: list[Loan] = []
    reached = 0
    for loan in loans:
        if reached >= persons:
            break
        taken.append(loan)
        reached += loan.persons
    return tuple(taken)


def _together(parts: Sequence[Holding], k: int) -> Holding:
    if len(parts) == 1:
        return parts[0]
    return Holding(
        sum(part.signatures for part in parts),
        sum(part.persons for part in parts),
        tuple(leaf for part in parts for leaf in part.leaves),
        tuple(key for part in parts for key in part.borrowed),
        _first(merge(*(part.loans for part in parts)), k),
    )


def _with(held: Holding, loans: Sequence[Loan], k: int) -> Holding:
    keys = tuple(loan.key for loan in loans)
    lent = Holding(len(loans), sum(loan.persons for loan in loans), (), keys, tuple(loans))
    return _together([held, lent], k)


def _without(held: Holding, loans: Sequence[Loan]) -> Holding:
    """A lender after its loan; it is released, and lends no more."""
    gone = {loan.key for loan in loans}
    return Holding(
        held.signatures - len(loans),
        held.persons - sum(loan.persons for loan in loans),
        held.leaves,
        tuple(key for key in held.borrowed if key not in gone),
    )
