"""`prgain`: raise one column by one level a round, bank the rows of groups that became good, go on with the rest.

Source: Privacy gain based multi-iterative k-anonymization, where k persons make a group good; here it must also satisfy
what is asked beyond k. PrGain is the share of all rows that are banked. Each round tries every column that is not at
its top and takes the one with the largest PrGain; equal ones are followed side by side, up to `beam` of them, those
declared first before the others. A branch that falls behind is given up; of those that are equal to the end the one of
least loss is kept. Groups that are good as they stand are banked before the first round. It ends when nobody is left,
when fewer than k persons are, or when all columns are at their tops; what is left joins the class that it costs least,
or is suppressed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kanon_spark.kernels.level_counts import LevelVector, Tally
from kanon_spark.methods.base import Leftover
from kanon_spark.methods.full_domain import Choice, FullDomain, LevelCounts

BEAM = 4  # branches of equal PrGain that are followed, unless the configuration names another number


@dataclass(frozen=True)
class _Branch:
    """One way of raising columns.

    Attributes:
        left: Counts of what is not banked, from the current levels upwards.
        levels: The current levels.
        released: The levels that banked something, in turn.
        banked: Rows that are banked.
        loss: Their loss, in whole units.
        rounds: What happened in each round.
    """

    left: LevelCounts
    levels: LevelVector
    released: tuple[LevelVector, ...]
    banked: int
    loss: int
    rounds: tuple[Mapping[str, Any], ...]

    def raises(self) -> list[LevelVector]:
        """The levels that the next round tries; none where it is over."""
        scope, levels = self.left.scope, self.levels
        if self.left.persons < scope.k:
            return []
        tops = scope.heights
        return [(*levels[:j], at + 1, *levels[j + 1 :]) for j, at in enumerate(levels) if at < tops[j]]

    def banks(self, levels: LevelVector, tally: Tally) -> "_Branch":
        """The branch after a round; who has left is not counted before the branch is known to go on."""
        scope = self.left.scope
        banked, loss = self.banked + tally.rows, self.loss + tally.loss
        told = {
            "levels": dict(zip(scope.ladders.names, levels, strict=True)),
            "prgain": banked / max(1, scope.rows),
            "gcp": scope.gcp(banked, loss),
        }
        return replace(
            self,
            levels=levels,
            released=(*self.released, levels) if tally.rows else self.released,
            banked=banked,
            loss=loss,
            rounds=(*self.rounds, told),
        )

    def goes_on(self) -> "_Branch":
        """The branch with what has been banked gone."""
        return replace(self, left=self.left.without(self.levels))


@dataclass(frozen=True)
class PrGain(FullDomain):
    """The method with its options."""

    leftover: Leftover = "join"
    beam: int = BEAM
    name: str = "prgain"

    def choose(self, counts: LevelCounts) -> Choice:
        """The levels that bank something, in turn."""
        levels = counts.scope.floor
        start = _Branch(counts, levels, (), 0, 0, ())
        branches = [start.banks(levels, counts.tally([levels])[0]).goes_on()]
        while any(branch.raises() for branch in branches):
            branches = self._round(branches)
        best = min(branches, key=lambda branch: branch.loss)
        return Choice(best.released, best.rounds)

    def _round(self, branches: list[_Branch]) -> list[_Branch]:
        """All branches after one more round: only those of the largest PrGain, and no more than fit."""
        tried: list[tuple[_Branch, bool]] = []
        for branch in branches:
            vectors = branch.raises()
            if not vectors:
                tried.append((branch, False))
                continue
            tallies = branch.left.tally(vectors)
            tried += [(branch.banks(levels, tally), True) for levels, tally in zip(vectors, tallies, strict=True)]
        most = max(branch.banked for branch, _ in tried)
        # Branches that have banked at the same levels in the same turn are one, whatever was raised between.
        same: dict[tuple[Any, ...], tuple[_Branch, bool]] = {}
        for branch, moved in tried:
            if branch.banked == most:
                same.setdefault((branch.released, branch.levels), (branch, moved))
        return [branch.goes_on() if moved else branch for branch, moved in list(same.values())[: self.beam]]
