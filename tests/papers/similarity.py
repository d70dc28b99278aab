"""Similarity-based clustering (`sbca`): figure 5 and table 3, 5,000 rows with three quasi-identifiers."""

import pandas as pd

from papers.cells import Entrant, cell, sample
from papers.paper import Finding, Paper, Plot, World, compare, worst

QIS = ("age", "sex", "native-country")
SBCA, MONDRIAN, INCOGNITO, DATAFLY = "sbca", "mondrian", "incognito", "datafly"
ENTRANTS = (
    Entrant(SBCA, {"name": "sbca"}),
    Entrant(MONDRIAN, {"name": "mondrian"}),
    Entrant(INCOGNITO, {"name": "incognito"}, hierarchies=True, max_suppression=0.01),
    Entrant(DATAFLY, {"name": "datafly"}, hierarchies=True, max_suppression=0.01),
)
THEIRS = {SBCA: 582, MONDRIAN: 209, INCOGNITO: 22, DATAFLY: 16}


def experiment(world: World) -> pd.DataFrame:
    """Loss of what is published and distinct published tuples, by k."""
    rows = sample(world.rows, world.pick(5_000, 800), seed=world.seed)
    found = []
    for k in world.pick((2, 5, *range(10, 101, 10)), (2, 10)):
        world.tell(f"similarity-based clustering: k = {k}")
        found += [cell(entrant, rows, qis=QIS, k=k, seed=world.seed) for entrant in ENTRANTS]
    return pd.DataFrame(found)


def verdicts(cells: pd.DataFrame) -> list[Finding]:
    """Loss below 0.20, less than the others, and the tuples of table 3."""
    loss = cells.pivot_table(index="k", columns="method", values="gcp_published")
    below = float(loss[SBCA].max())
    others = (MONDRIAN, INCOGNITO, DATAFLY)
    against = {other: compare(cells, "gcp_published", SBCA, other, by=["k"]) for other in others}
    holds = worst([one.holds for one in against.values()])
    return [
        Finding(
            "total NCP stays below 0.20 (utility above 80%) for k = 2 … 100",
            "below 0.20 throughout (figure 5)",
            f"{loss[SBCA].min():.3f} at k = {loss.index.min()} to {below:.3f} at most",
            "yes" if below < 0.20 else "no",
            "" if below < 0.20 else "above it at large k",
        ),
        Finding(
            "its total NCP is much less than that of Mondrian, Incognito and Datafly",
            "much less for every k (figure 5)",
            "; ".join(f"not above {other} {one}" for other, one in against.items()),
            holds,
            "" if holds == "yes" else _why(against[MONDRIAN].holds),
        ),
        *_tuples(cells),
    ]


def _why(against_mondrian: str) -> str:
    if against_mondrian == "yes":
        return "a full-domain release may be cheaper where few rows must be suppressed"
    return (
        "by the paper's word its Mondrian (a toolbox) lost 98% of sex, for want of an order of categories; ours cuts "
        "categories as sets and keeps sex, which leaves little to win"
    )


def _tuples(cells: pd.DataFrame) -> list[Finding]:
    least = cells[cells["k"] == cells["k"].min()].set_index("method")
    classes, signatures = least["classes"], int(least["signatures"].max())
    more = classes[SBCA] >= 2 * classes[MONDRIAN]
    order = list(classes.sort_values(ascending=False).index)
    expected = sorted(THEIRS, key=lambda name: -THEIRS[name])
    falls = bool((classes[expected].diff().dropna() < 0).all())
    return [
        Finding(
            "at k = 2 it publishes more than twice as many distinct tuples as Mondrian",
            f"{THEIRS[SBCA]} against {THEIRS[MONDRIAN]} (table 3)",
            f"{classes[SBCA]} against {classes[MONDRIAN]}",
            "yes" if more else "no",
            ""
            if more
            else f"of the {signatures} distinct tuples in these rows equal ones are never parted here, so that fewer "
            "classes can arise than in the paper; and by its word its Mondrian kept 2% of sex, where ours keeps it",
        ),
        Finding(
            "distinct tuples at k = 2 fall from SBCA over Mondrian and Incognito to Datafly",
            " > ".join(f"{name} {THEIRS[name]}" for name in expected) + " (table 3)",
            ", ".join(f"{name} {classes[name]}" for name in order),
            "yes" if falls else "mostly" if set(order[:2]) == {SBCA, MONDRIAN} else "no",
            "" if falls else "other hierarchies and another limit of suppression than the toolbox had",
        ),
    ]


PAPER = Paper(
    "004",
    "Similarity-based clustering (SBCA)",
    "5,000 rows drawn from Adult (the paper does not say which), age, sex, native-country; sbca and mondrian publish "
    "ranges and sets, incognito and datafly use hierarchies and may suppress 1% of the rows; loss as published",
    experiment,
    verdicts,
    (
        Plot("figure_5_ncp", "Total NCP", "k", "gcp_published"),
        Plot("table_3_tuples", "Distinct published tuples", "k", "classes"),
    ),
)
