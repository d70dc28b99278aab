"""The numbers of a release, each with a sentence that says what it means and the formula behind it."""

from kanon_spark.report.facts import FewerThan, Figure, Manifest, count, lookup, number, percent, unit_word


def figures(manifest: Manifest) -> list[Figure]:
    """All numbers that the manifest holds, the most asked-for first.

    >>> [figure.value for figure in figures({"privacy": {"k": {"asked": 5, "achieved": 8}}})]
    ['8', '12.5%']
    """
    counts = (_k, _chance, _rows, _suppressed, _persons, _persons_left_out)
    makers = (*counts, _gcp, _bound, _gap, _classes, _cavg, _dm)
    return [figure for maker in makers if (figure := maker(manifest)) is not None]


def _k(manifest: Manifest) -> Figure | None:
    asked, achieved = number(manifest, "privacy", "k", "asked"), number(manifest, "privacy", "k", "achieved")
    if asked is None or achieved is None:
        return None
    others = f"{count(achieved - 1)} or more other {unit_word(manifest)}"
    hidden = f"by the quasi-identifiers alone, every one hides among {others}"
    formula = f"fewest {unit_word(manifest)} that share a published combination of quasi-identifiers"
    return Figure("k achieved", count(achieved), f"{count(asked)} was asked for; {hidden}.", formula)


def _chance(manifest: Manifest) -> Figure | None:
    achieved = number(manifest, "privacy", "k", "achieved")
    if not achieved:
        return None
    sentence = "The chance that somebody's row is picked rightly, at worst, by one who knows all quasi-identifiers."
    return Figure("re-identification, at worst", percent(1 / achieved), sentence, "1 / smallest class")


def _rows(manifest: Manifest) -> Figure | None:
    released, whole = number(manifest, "rows", "released"), number(manifest, "rows", "input")
    if released is None:
        return None
    sentence = "Rows that stand in classes." if whole is None else f"Out of {count(whole)} rows of the source."
    return Figure("rows released", count(released), sentence, "rows in classes")


def _persons(manifest: Manifest) -> Figure | None:
    persons, gone = number(manifest, "persons"), number(manifest, "persons_suppressed")
    if persons is None or unit_word(manifest) == "rows":
        return None
    once = "k counts persons: several rows of one person count once."
    formula = "distinct values of the unit, and rows without one"
    if gone is None:
        return Figure("persons", count(persons), f"In the source. {once}", formula)
    sentence = f"Persons with a row in the release, out of {count(persons)} in the source. {once}"
    return Figure("persons released", count(persons - gone), sentence, f"{formula}, in classes")


def _persons_left_out(manifest: Manifest) -> Figure | None:
    gone = number(manifest, "persons_suppressed")
    if gone is None or unit_word(manifest) == "rows":
        return None
    sentence = "Nobody was left out wholly." if not gone else "Persons none of whose rows is in the release."
    return Figure("persons suppressed", count(gone), sentence, "persons of the source - persons released")


def _suppressed(manifest: Manifest) -> Figure | None:
    suppressed, whole = number(manifest, "rows", "suppressed"), number(manifest, "rows", "input")
    if suppressed is None:
        return None
    formula = "rows of the source - rows in classes"
    if not suppressed:
        return Figure("rows suppressed", "0", "No row had to be left out.", formula)
    share = f" ({percent(suppressed / whole)})" if whole and not isinstance(suppressed, FewerThan) else ""
    sentence = f"Rows{share} that could not be hidden among others."
    return Figure("rows suppressed", count(suppressed), sentence, formula)


def _classes(manifest: Manifest) -> Figure | None:
    classes = number(manifest, "classes")
    if classes is None:
        return None
    sizes = [number(manifest, "class_sizes", end) for end in ("smallest", "largest")]
    sentence = "Groups of rows with the same published quasi-identifiers"
    if None not in sizes:
        sentence += f", of {count(sizes[0])} to {count(sizes[1])} rows each"
    return Figure("classes", count(classes), sentence + ".", "distinct published combinations")


def _gcp(manifest: Manifest) -> Figure | None:
    gcp = number(manifest, "metrics", "gcp")
    if gcp is None:
        return None
    sentence = "The share of detail that the quasi-identifiers lost (GCP): 0% is untouched, 100% is nothing but *."
    return Figure("loss", percent(gcp), sentence, "GCP = Σ rows · Σ weight · NCP / (rows · Σ weight)")


def _bound(manifest: Manifest) -> Figure | None:
    bound, kind = number(manifest, "metrics", "gcp_bound"), lookup(manifest, "metrics", "bound_kind")
    if bound is None:
        return None
    how = f" ({kind} bound)" if isinstance(kind, str) and kind else ""
    sentence = f"No release with these hierarchies and this k can lose less{how}."
    return Figure("lower bound", percent(bound), sentence, "Σ rows · least loss of any class they could be in / rows")


def _gap(manifest: Manifest) -> Figure | None:
    gap = number(manifest, "metrics", "gcp_gap")
    if gap is None:
        return None
    sentence = "At most this much more is lost than by the best possible release."
    return Figure("gap to the bound", percent(gap), sentence, "GCP / bound - 1")


def _cavg(manifest: Manifest) -> Figure | None:
    cavg = number(manifest, "metrics", "cavg")
    if cavg is None:
        return None
    sentence = "How many times larger than k the average class is (CAVG); nearer to 1 keeps more detail."
    return Figure("average class", f"{cavg:.2f}", sentence, "CAVG = rows released / (classes · k)")


def _dm(manifest: Manifest) -> Figure | None:
    dm = number(manifest, "metrics", "dm")
    if dm is None:
        return None
    sentence = "How many pairs of rows cannot be told apart; each suppressed row counts with all others."
    return Figure("discernibility", count(dm), sentence, "DM = Σ class size² + suppressed · rows of the source")
