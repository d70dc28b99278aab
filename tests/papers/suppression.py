"""Multidimensional suppression (`kactus`): what classifiers learn from its releases, and from others' at equal k."""

import pandas as pd
from bench.adult import QI8
from bench.methods import TARGET

from papers.cells import Entrant, learnt, sample, solve, split
from papers.paper import Finding, Holds, Paper, Plot, World

KACTUS, SINGLE = "kactus", "kactus (single dimension)"
OTHERS = ("mondrian", "prgain", "datafly", "incognito")
ENTRANTS = (
    Entrant(KACTUS, {"name": "kactus", "target": TARGET}),
    Entrant(SINGLE, {"name": "kactus", "target": TARGET, "dimension": "single"}),
    Entrant("mondrian", {"name": "mondrian"}),
    Entrant("prgain", {"name": "prgain"}, hierarchies=True),
    Entrant("datafly", {"name": "datafly"}, hierarchies=True, max_suppression=0.1),
    Entrant("incognito", {"name": "incognito"}, hierarchies=True, max_suppression=0.1),
    Entrant("lattice", {"name": "lattice", "effort": "fast"}, hierarchies=True),
    Entrant("k-member", {"name": "kmember", "effort": "fast"}),
)
_CLASSIFIERS = (("tree", "decision tree"), ("nb", "naive Bayes"))
_POINT = 0.01  # of accuracy: what counts as nearly the same


def experiment(world: World) -> pd.DataFrame:
    """Scores of both classifiers per method and k; then seconds of `kactus` at growing sizes."""
    found = []
    for seed in range(world.seed, world.seed + world.pick(3, 1)):
        train, test = split(world.rows, share=1 / 3, seed=seed)
        for k in world.pick((10, 50, 100, 200), (10,)):
            world.tell(f"multidimensional suppression: split {seed}, k = {k}")
            for entrant in ENTRANTS:
                scored = learnt(entrant, train, test, qis=QI8, k=k, seed=seed)
                found.append({"part": "scores", "split": seed, **scored})
    for rows in world.pick((5_000, 10_000, 20_000, len(world.rows)), (500, 1_000)):
        part = sample(world.rows, rows, seed=world.seed)
        seconds = min(solve(ENTRANTS[0], part, qis=QI8, k=10, seed=world.seed).cpu_seconds for _ in range(2))
        found.append({"part": "growth", "method": KACTUS, "k": 10, "rows": len(part), "cpu_seconds": seconds})
    return pd.DataFrame(found)


def verdicts(cells: pd.DataFrame) -> list[Finding]:
    """Against the comparators of its time, against the original, one dimension against many, and growth."""
    scores = cells[cells["part"] == "scores"]
    found = [_against_others(scores, short, name) for short, name in _CLASSIFIERS]
    found.append(_against_original(scores))
    found.append(_dimensions(scores))
    found.append(_growth(cells[cells["part"] == "growth"]))
    return found


def _table(scores: pd.DataFrame, value: str) -> pd.DataFrame:
    """One row per k, one column per method: means over the splits."""
    return scores.pivot_table(index="k", columns="method", values=value)


def _against_others(scores: pd.DataFrame, short: str, name: str) -> Finding:
    accuracy = _table(scores, f"{short}_release_accuracy")
    rivals = accuracy[[other for other in OTHERS if other in accuracy.columns]]
    ahead = accuracy[KACTUS] - rivals.max(axis=1)
    holds: Holds = "yes" if (ahead >= 0).all() else "mostly" if (ahead >= -_POINT).all() else "no"
    silent = scores[scores["method"] == KACTUS].groupby("k")["suppressed_cells"].mean()
    last = ahead.idxmin()
    each = scores.pivot_table(index=["k", "split"], columns="method", values=f"{short}_release_accuracy")[KACTUS]
    apart = float((each.groupby("k").max() - each.groupby("k").min()).max())
    best = accuracy.drop(columns=[KACTUS, SINGLE]).mean().sort_values().index[-1]
    return Finding(
        f"predictive performance is better than that of existing methods ({name})",
        "better (no figures in the text)",
        f"accuracy {accuracy[KACTUS].mean():.3f} on average over k, best of {', '.join(rivals.columns)} "
        f"{rivals.max(axis=1).mean():.3f} (ahead by {ahead.min():+.3f} to {ahead.max():+.3f}); "
        f"best of all here: {best} {accuracy[best].mean():.3f}; splits of the rows differ by up to {apart:.3f}",
        holds,
        ""
        if holds == "yes"
        else f"ahead at {int((ahead >= 0).sum())} of {len(ahead)} values of k, behind by most at k = {last}, where "
        f"{silent[last]:.0%} of its cells are `?` ({silent.min():.0%} at best)",
    )


def _against_original(scores: pd.DataFrame) -> Finding:
    mine = scores[scores["method"] == KACTUS].groupby("k", as_index=False).mean(numeric_only=True)
    losses = [
        (float(original - released), name, int(k))
        for short, name in _CLASSIFIERS
        for k, original, released in mine[["k", f"{short}_original_accuracy", f"{short}_release_accuracy"]].itertuples(
            index=False
        )
    ]
    worst, whose, k = max(losses)
    return Finding(
        "the release serves any inducer, close to the original",
        "used by any induction algorithm (no figures in the text)",
        "; ".join(
            f"{name}: {mine[f'{short}_original_accuracy'].iloc[0]:.3f} from the original, "
            + " / ".join(f"{accuracy:.3f}" for accuracy in mine[f"{short}_release_accuracy"])
            + " from releases"
            for short, name in _CLASSIFIERS
        )
        + f"; the majority alone {mine['majority'].iloc[0]:.3f}",
        "yes" if worst <= 0.02 else "mostly" if worst <= 0.04 else "no",
        "" if worst <= 0.02 else f"up to {worst:.3f} of accuracy is lost, by {whose} at k = {k}",
    )


def _dimensions(scores: pd.DataFrame) -> Finding:
    loss, accuracy = _table(scores, "gcp_published"), _table(scores, "tree_release_accuracy")
    less = (loss[KACTUS] <= loss[SINGLE]).all()
    better = (accuracy[KACTUS] >= accuracy[SINGLE] - _POINT).all()
    return Finding(
        "suppressing a value in some rows loses less than suppressing it in all of them",
        "single dimension: quite limited, over-suppression",
        f"loss {loss[KACTUS].mean():.3f} against {loss[SINGLE].mean():.3f}; "
        f"accuracy of trees {accuracy[KACTUS].mean():.3f} against {accuracy[SINGLE].mean():.3f}, means over k",
        "yes" if less and better else "mostly" if less else "no",
        "" if less and better else "classifiers need few of the values that single-dimension suppression takes away",
    )


def _growth(cells: pd.DataFrame) -> Finding:
    ends = cells.sort_values("rows").iloc[[0, -1]]
    times = ends["rows"].iloc[1] / ends["rows"].iloc[0]
    longer = ends["cpu_seconds"].iloc[1] / ends["cpu_seconds"].iloc[0]
    return Finding(
        "scales well with large data sets",
        "figure 1: seconds beside an algorithm that is not named in full (picture only)",
        f"{longer:.1f} times the CPU seconds for {times:.1f} times the rows "
        f"({ends['cpu_seconds'].iloc[1]:.1f} s at {ends['rows'].iloc[1]:,.0f} rows)",
        "yes" if longer <= 1.5 * times else "no",
        "" if longer <= 1.5 * times else "grows faster than the rows",
    )


PAPER = Paper(
    "001",
    "Multidimensional suppression (kACTUS)",
    "Adult, eight quasi-identifiers, target income; two thirds anonymized and learnt from, one third tested on as it "
    "was, k = 10, 50, 100, 200, means over three splits; the text has no figures, so its claims are taken in words",
    experiment,
    verdicts,
    (
        Plot("tree_accuracy", "Accuracy of decision trees", "k", "tree_release_accuracy", where="part == 'scores'"),
        Plot("naive_bayes_accuracy", "Accuracy of naive Bayes", "k", "nb_release_accuracy", where="part == 'scores'"),
        Plot("growth", "CPU seconds by rows", "rows", "cpu_seconds", where="part == 'growth'"),
    ),
)
