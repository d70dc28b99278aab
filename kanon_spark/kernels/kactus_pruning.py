"""Pruning a classification tree from the bottom up, until every class that is released is good.

Good is what has at least k persons and satisfies what is asked beyond k.

Idea: at a node whose children have become leaves, those that are good are released, and the others are pruned into the
node. If what was pruned is not good, it borrows whole signatures from a child that stays good; if no child can lend so
much, the smallest good ones are pruned as well, until it is good (one is enough where k is all that is asked). If not
even all of them would help, none is. The node is then a leaf itself, holding what was pruned, and its own parent goes
on with it. So what reaches the root is what no named value could hide.

    lenders   those with most persons first, then in the order of the cut; the first that can lend does
    loans     signatures of fewest persons first, then in the order of their codes, until the borrower is good; at most
              as many as have k persons together

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

from kanon_spark.kernels.value_sums import ValueSums
from kanon_spark.privacy.demands import Demands


class Loan(NamedTuple):
    """A signature that may be lent; `key` tells it from others and orders it by its codes.

    `values` are its sensitive values, where more than k is asked.
    """

    persons: int
    key: Any
    values: ValueSums | None = None


@dataclass(frozen=True)
class Holding:
    """What a leaf holds: what is left of some leaves of the original tree, and what it borrowed.

    Attributes:
        signatures: How many; a leaf without any has disappeared.
        persons: May be 0 where all of them count elsewhere.
        leaves: The leaves of the original tree whose signatures it holds, but for those that others have borrowed.
        borrowed: Keys of the signatures that it has borrowed, in place of their own leaf.
        loans: What it could lend, in order: as much as anyone may ask for, or all there is.
        values: Its sensitive values, where more than k is asked.
    """

    signatures: int = 0
    persons: int = 0
    leaves: tuple[int, ...] = ()
    borrowed: tuple[Any, ...] = ()
    loans: tuple[Loan, ...] = ()
    values: ValueSums | None = None


@dataclass(frozen=True)
class Asked:
    """What makes a class good: at least k persons, and all demands where there are any."""

    k: int
    demands: Demands | None = None

    def good(self, held: Holding) -> bool:
        """Whether something could be released."""
        if held.persons < self.k:
            return False
        return self.demands is None or held.values is None or held.values.satisfy(self.demands, held.persons)


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


def prune(children: Sequence[Sequence[int]], leaves: Mapping[int, Holding], asked: Asked) -> Pruned:
    """Prune a tree whose nodes have larger numbers than their parents; node 0 is the root.

    Args:
        children: Of each node, in the order of the cut; none of a leaf.
        leaves: What each leaf holds.
        asked: What makes a class good.
    """
    released: list[tuple[int, Holding]] = []
    held: dict[int, Holding] = {}
    for node in reversed(range(len(children))):
        if not children[node]:
            held[node] = leaves[node]
        else:
            full, held[node] = _prune_node([(child, held.pop(child)) for child in children[node]], asked)
            released += full
    return Pruned(released, held[0])


def _prune_node(children: list[tuple[int, Holding]], asked: Asked) -> tuple[list[tuple[int, Holding]], Holding]:
    """The children that are released, and what the node itself is left with."""
    k = asked.k
    good = [asked.good(held) for _, held in children]
    full = [each for each, released in zip(children, good, strict=True) if released]
    pruned = together([held for (_, held), released in zip(children, good, strict=True) if not released], k)
    if not pruned.signatures or not full or asked.good(pruned):
        return full, pruned
    for child, lender in sorted(full, key=lambda each: -each[1].persons):  # stable: ties in the order of the cut
        lent = _lend(pruned, lender, asked)
        if lent is not None:
            kept, taker = lent
            return [(each, kept if each == child else held) for each, held in full], taker
    joined, gone = pruned, set()
    for child, smallest in sorted(full, key=lambda each: each[1].persons):
        joined = together([joined, smallest], k)
        gone.add(child)
        if asked.good(joined):
            return [each for each in full if each[0] not in gone], joined
    return full, pruned


def _lend(taker: Holding, lender: Holding, asked: Asked) -> tuple[Holding, Holding] | None:
    """Lender and taker after the loan that makes the taker good; None where that cannot be, or the lender would not."""
    loans: list[Loan] = []
    reached = taker.persons
    for loan in lender.loans:
        loans.append(loan)
        reached += loan.persons
        if reached < asked.k:
            continue
        helped = _with(taker, loans, asked.k)
        if asked.good(helped):
            kept = _without(lender, loans)
            return (kept, helped) if asked.good(kept) else None
    return None


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


def together(parts: Sequence[Holding], k: int) -> Holding:
    """What several leaves hold as one."""
    if len(parts) == 1:
        return parts[0]
    return Holding(
        sum(part.signatures for part in parts),
        sum(part.persons for part in parts),
        tuple(leaf for part in parts for leaf in part.leaves),
        tuple(key for part in parts for key in part.borrowed),
        _first(merge(*(part.loans for part in parts)), k),
        _values([part.values for part in parts]),
    )


def _values(parts: Sequence[ValueSums | None]) -> ValueSums | None:
    """Values of several things together; None where nobody asks for them."""
    held = [part for part in parts if part is not None]
    return ValueSums.together(held) if held else None


def _with(held: Holding, loans: Sequence[Loan], k: int) -> Holding:
    keys = tuple(loan.key for loan in loans)
    values = _values([loan.values for loan in loans])
    lent = Holding(len(loans), sum(loan.persons for loan in loans), (), keys, tuple(loans), values)
    return together([held, lent], k)


def _without(held: Holding, loans: Sequence[Loan]) -> Holding:
    """A lender after its loan; it is released, and lends no more."""
    gone = {loan.key for loan in loans}
    taken = _values([loan.values for loan in loans])
    return Holding(
        held.signatures - len(loans),
        held.persons - sum(loan.persons for loan in loans),
        held.leaves,
        tuple(key for key in held.borrowed if key not in gone),
        values=held.values if held.values is None or taken is None else held.values.without(taken),
    )
