"""What a manifest says, in words and numbers that people read. Console and HTML both speak through this file.

A manifest is a plain dict (see `releases/`), and a report must never fail on one that is old or cut short: whatever is
missing is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Manifest = Mapping[str, Any]

LIMITS: tuple[tuple[str, str], ...] = (
    (
        "Rows that look alike may also fall ill alike",
        "k-anonymity hides which row is yours, not what all rows of a class have in common. If everyone in a class has "
        "the same diagnosis, knowing your class tells your diagnosis. l-diversity, t-closeness and the other models "
        "limit that for the sensitive columns that they are asked for, and for no others.",
    ),
    (
        "Someone who knows more can exclude more",
        "The guarantee is against a reader who knows the quasi-identifiers. One who also knows other facts, for "
        "instance that a neighbour never had surgery, can rule rows out.",
    ),
    (
        "Only the columns named as quasi-identifiers are generalized",
        "Sensitive and other kept columns are published as they are. If a reader can know their values (an exact cost, "
        "a rare date), they identify as well as a zip code does.",
    ),
    (
        "Two releases of overlapping data can be compared",
        "Each may be k-anonymous and the pair not: a person's two classes may meet in one row only.",
    ),
    (
        "Tight ranges show real values",
        "Without a hierarchy a column publishes ranges such as [31, 38], whose ends are values that occur in the "
        "class; an interval hierarchy publishes round bounds instead.",
    ),
)


@dataclass(frozen=True)
class Verdict:
    """The answer in one line."""

    good: bool
    text: str


class FewerThan(float):
    """A count that is too small to be shown: it stands for itself in texts, as `<k`.

    >>> count(FewerThan(5)), percent(FewerThan(5))
    ('<5', '-')
    """

    def __str__(self) -> str:
        return f"<{round(float(self))}"

    __repr__ = __str__


@dataclass(frozen=True)
class Figure:
    """A number with its name, one sentence that says what it means, and how it is worked out."""

    name: str
    value: str
    sentence: str
    formula: str = ""


@dataclass(frozen=True)
class Samples:
    """The same rows before and after: quasi-identifiers both ways, kept columns once."""

    qi: tuple[str, ...]
    kept: tuple[str, ...]
    before: tuple[Mapping[str, Any], ...]
    after: tuple[Mapping[str, Any], ...]


def lookup(manifest: Manifest, *path: str) -> Any:
    """The value at a path of keys, or None."""
    value: Any = manifest
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def number(manifest: Manifest, *path: str) -> float | None:
    """The number at a path of keys, or None."""
    value = lookup(manifest, *path)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def count(value: float | None) -> str:
    """A whole number for people.

    >>> count(50000), count(None)
    ('50,000', '-')
    """
    if isinstance(value, FewerThan):
        return str(value)
    return "-" if value is None else f"{round(value):,}"


def percent(value: float | None) -> str:
    """A share for people, with three digits that mean something.

    >>> percent(0.07671), percent(0.5), percent(0.0), percent(0.00001)
    ('7.67%', '50.0%', '0%', '0.001%')
    """
    if value is None or isinstance(value, FewerThan):
        return "-"
    scaled = 100 * value
    if scaled == 0:
        return "0%"
    digits = 2 if abs(scaled) < 10 else 1
    return f"{scaled:.{digits}f}%" if abs(scaled) >= 0.01 else f"{scaled:.1g}%"


def unit_word(manifest: Manifest) -> str:
    """What k counts: "persons" where the request names a unit, else "rows"."""
    named = lookup(manifest, "privacy", "unit") or lookup(manifest, "privacy", "k", "unit")
    persons, rows = number(manifest, "persons"), number(manifest, "rows", "input")
    return "persons" if named or (persons is not None and persons != rows) else "rows"


def verdict(manifest: Manifest) -> Verdict:
    """The outcome in plain words.

    >>> verdict({"outcome": "published", "privacy": {"k": {"asked": 5, "achieved": 6}}}).text
    'Verified and published: every combination of quasi-identifiers in the release is shared by at least 6 rows.'
    """
    asked, achieved = number(manifest, "privacy", "k", "asked"), number(manifest, "privacy", "k", "achieved")
    failed = str(manifest.get("outcome", "")) in {"failed", "refused", "aborted"}
    if failed or asked is None or achieved is None:
        reason = lookup(manifest, "error", "message") or "the run did not come to its end"
        return Verdict(False, f"Nothing was published: {reason}")
    if achieved < asked:
        return Verdict(False, f"Not {count(asked)}-anonymous: a combination is shared by only {count(achieved)}.")
    asked_of = models(manifest)
    if any(not model.passed for model in asked_of):
        return Verdict(False, "Not what was asked for: a class does not satisfy every privacy model.")
    also = ", and every class satisfies what else was asked" if asked_of else ""
    return Verdict(
        True,
        f"Verified and published: every combination of quasi-identifiers in the release is shared by at least "
        f"{count(achieved)} {unit_word(manifest)}{also}.",
    )


def asked(manifest: Manifest) -> list[str]:
    """What was asked for, one sentence each."""
    k = number(manifest, "privacy", "k", "asked")
    if k is None:
        return []
    names = lookup(manifest, "columns", "qi")
    qi = ", ".join(map(str, names)) if isinstance(names, Sequence) and names else "the quasi-identifiers"
    lines = [f"Every published combination of {qi} is shared by at least {count(k)} {unit_word(manifest)}."]
    lines += [
        f"Every class has {model.words}{f', of {model.column}' if model.column else ''}." for model in models(manifest)
    ]
    share = number(manifest, "privacy", "max_suppression")
    if share is not None:
        lines.append(
            "No row may be left out." if share == 0 else f"At most {percent(share)} of the rows may be left out."
        )
    return lines


def proved(manifest: Manifest) -> str:
    """What was proved on the written table, and by which checks."""
    found = checks(manifest)
    if not found:
        return ""
    failed = [name for name, passed, _ in found if not passed]
    if failed:
        return f"Not proved: {', '.join(failed)}."
    names = ", ".join(name for name, _, _ in found)
    many = "one check of its own" if len(found) == 1 else f"{len(found)} checks of their own"
    return f"Proved on the table as it was written, read back by {many}: {names}."


_MODELS = {
    "l_diversity": "l-diversity",
    "t_closeness": "t-closeness",
    "alpha": "(alpha,k)-anonymity",
    "beta_likeness": "beta-likeness",
    "delta_disclosure": "delta-disclosure",
    "personal_k": "personal k",
    "k_map": "k-map",
}


_FORMULAS = {
    "distinct": "fewest different values in a class, null apart",
    "entropy": "least exp(-Σ p ln p)",
    "recursive": "largest count / (counts from the l-th on), counts in falling order",
    "equal": "largest ½ Σ |p - q|",
    "ordered": "largest Σ |Σ p - q up to each value| / (values - 1)",
    "hierarchical": "largest mean over the hierarchy's levels of ½ Σ |p - q|",
    "alpha": "largest share of a class that carries one value",
    "basic": "largest (p - q) / q",
    "enhanced": "largest (p - q) / q, and none above -ln q",
    "delta_disclosure": "largest |ln(p / q)|",
    "personal_k": "least size of a class / largest k that is asked for in it",
    "k_map": "fewest persons of the population that fit a published combination",
}
_USUAL = {"l_diversity": "distinct", "t_closeness": "equal", "beta_likeness": "basic"}


@dataclass(frozen=True)
class Model:
    """A privacy model beyond k: what every class must have, in words, what the worst class has, and which formula."""

    model: str
    column: str | None
    words: str
    achieved: float | None
    passed: bool
    formula: str = ""

    @property
    def figure(self) -> Figure:
        """The model as a number with a sentence."""
        name = _MODELS[self.model] + (f" of {self.column}" if self.column else "")
        value = "-" if self.achieved is None else f"{self.achieved:.4g}"
        verdict = "every class has it, the worst as much as this" if self.passed else "not every class has it"
        return Figure(name, value, f"Asked: {self.words}; {verdict}.", self.formula)


def models(manifest: Manifest) -> list[Model]:
    """Every privacy model beyond k that was asked for, in the order of the checks."""
    privacy = manifest.get("privacy")
    found = [each for each in privacy.values() if isinstance(each, Mapping)] if isinstance(privacy, Mapping) else []
    return [
        Model(
            str(each["model"]),
            None if each.get("column") is None else str(each["column"]),
            str(each.get("words", "")),
            number(each, "achieved"),
            bool(each.get("passed")),
            _FORMULAS.get(_kind(each), ""),
        )
        for each in found
        if str(each.get("model")) in _MODELS
    ]


def _kind(found: Mapping[str, Any]) -> str:
    """Which of its kinds or distances a model was asked for in."""
    model = str(found.get("model"))
    return str(lookup(found, "asked", "kind") or lookup(found, "asked", "distance") or _USUAL.get(model, model))


def losses(manifest: Manifest) -> list[tuple[str, float]]:
    """Each quasi-identifier's loss (NCP), in the manifest's order."""
    per_qi = lookup(manifest, "metrics", "per_qi")
    if not isinstance(per_qi, Mapping):
        return []
    found = [(str(name), number(per_qi, name, "ncp")) for name in per_qi]
    return [(name, ncp) for name, ncp in found if ncp is not None]


def class_sizes(manifest: Manifest) -> list[tuple[str, float]]:
    """How many classes there are of each size, sizes with k worked out.

    >>> class_sizes({"privacy": {"k": {"asked": 5}}, "class_sizes": {"histogram": {"k..2k-1": 7, "2k..4k-1": 1}}})
    [('5 to 9', 7), ('10 to 19', 1)]
    """
    histogram = lookup(manifest, "class_sizes", "histogram")
    if not isinstance(histogram, Mapping):
        return []
    k = number(manifest, "privacy", "k", "asked")
    return [(_size_label(str(size), k), many) for size, many in histogram.items()]


def _size_label(size: str, k: float | None) -> str:
    low, dots, high = size.partition("..")
    if k is None or not dots or not low.endswith("k") or not high.endswith("k-1"):
        return size
    factors = [text.removesuffix("k") or "1" for text in (low, high.removesuffix("-1"))]
    if not all(factor.isdigit() for factor in factors):
        return size
    return f"{count(int(factors[0]) * k)} to {count(int(factors[1]) * k - 1)}"


def samples(manifest: Manifest) -> Samples | None:
    """Rows before and after, where the manifest has them (an internal one)."""
    before, after = lookup(manifest, "samples", "before"), lookup(manifest, "samples", "after")
    if not _rows_of(before) or not _rows_of(after):
        return None
    pairs = list(zip(before, after, strict=False))
    qi = lookup(manifest, "columns", "qi")
    names = tuple(str(name) for name in qi) if isinstance(qi, Sequence) and qi else tuple(pairs[0][1])
    added = lookup(manifest, "columns", "added") or ()
    kept = tuple(name for name in pairs[0][1] if name not in names and (name in pairs[0][0] or name in added))
    return Samples(names, kept, tuple(b for b, _ in pairs), tuple(a for _, a in pairs))


def _rows_of(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def dropped(manifest: Manifest) -> list[str]:
    """The columns that are not in the release."""
    names = lookup(manifest, "columns", "dropped")
    return [str(name) for name in names] if isinstance(names, Sequence) and not isinstance(names, str) else []


def pseudonyms(manifest: Manifest) -> list[str]:
    """The columns that are published as pseudonyms."""
    names = lookup(manifest, "columns", "pseudonyms")
    return [str(name) for name in names] if isinstance(names, Mapping) else []


def places(manifest: Manifest) -> list[tuple[str, str]]:
    """Where release, manifest and report are, and the recoding, which is confidential."""
    files = lookup(manifest, "files")
    if not isinstance(files, Mapping):
        files = {}
    sink = lookup(manifest, "sink")
    target = (
        next((sink[key] for key in ("target", "path", "table") if sink.get(key)), None)
        if isinstance(sink, Mapping)
        else sink
    )
    found = {
        "release": files.get("release") or target,
        "manifest": files.get("manifest"),
        "report": files.get("report"),
        "recoding": files.get("recoding"),
    }
    return [(name, str(place)) for name, place in found.items() if place]


def stage_seconds(manifest: Manifest) -> list[tuple[str, float]]:
    """Seconds per stage, in the order they ran."""
    stages = lookup(manifest, "seconds", "stages")
    if not isinstance(stages, Mapping):
        return []
    found = [(str(name), number(stages, name)) for name in stages]
    return [(name, seconds) for name, seconds in found if seconds is not None]


def checks(manifest: Manifest) -> list[tuple[str, bool, str]]:
    """What the verifier checked on the written table: name, passed, detail."""
    found = lookup(manifest, "checks") or lookup(manifest, "verification", "checks")
    if not isinstance(found, list):
        return []
    return [
        (str(check.get("name", "")), bool(check.get("passed")), str(check.get("detail", "")))
        for check in found
        if isinstance(check, Mapping)
    ]


def warnings(manifest: Manifest) -> list[str]:
    """What the run wants its owner to think about."""
    found = lookup(manifest, "warnings")
    return [str(text) for text in found] if isinstance(found, list) else []


def method_text(manifest: Manifest) -> str:
    """The method and its effort."""
    method = manifest.get("method")
    if isinstance(method, Mapping):
        effort = method.get("effort")
        return str(method.get("name", "")) + (f", effort {effort}" if effort else "")
    return str(method or "")
