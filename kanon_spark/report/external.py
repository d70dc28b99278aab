"""What of a manifest an external reader may see.

The report can travel with the release. So this is a list of what may be shown, not of what must not: anything that is
not named here stays inside. Nothing of the source is shown but how many rows it had; no value that fewer than k persons
of the release carry; no count of rows or persons under k (`<k` instead), nor what it could be worked out from; no path,
no configuration, no sample.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kanon_spark.report.facts import FewerThan, Manifest, lookup, number

_AS_IT_IS = ("name", "outcome", "finished", "run_id", "method", "effort", "content_hash", "config_sha256", "versions")
_MEASURES = ("gcp", "gcp_bound", "gcp_gap", "bound_kind", "cavg", "dm")
_SHARES = ("uniqueness", "marketer")
_MODES = ("prosecutor", "journalist")
_OF_A_MODEL = ("model", "column", "achieved", "passed")
_SEVERAL = "ranges and sets of several values"
_NAMED_VALUES = "at most a certain share of named sensitive values"


def external(manifest: Manifest) -> dict[str, Any]:
    """The part of a manifest that an external report is made of.

    >>> rows = {"input": 90, "released": 87, "suppressed": 3}
    >>> external({"privacy": {"k": {"asked": 5}}, "rows": rows, "samples": [1]})["rows"]
    {'released': 87.0, 'suppressed': <5}
    """
    k = number(manifest, "privacy", "k", "asked") or 2.0
    shown: dict[str, Any] = {key: manifest[key] for key in _AS_IT_IS if key in manifest}
    shown["edition"] = "external"
    shown["columns"] = {key: list(lookup(manifest, "columns", key) or ()) for key in ("qi", "sensitive", "kept")}
    shown["rows"] = _counts(lookup(manifest, "rows"), k)
    for key in ("persons", "persons_suppressed"):
        if number(manifest, key) is not None:
            shown[key] = _count(manifest[key], k)
    for key in ("classes",):
        if number(manifest, key) is not None:
            shown[key] = _count(manifest[key], k)
    sizes = lookup(manifest, "class_sizes") or {}
    shown["class_sizes"] = {
        **_counts({end: sizes.get(end) for end in ("smallest", "largest")}, k),
        "histogram": _counts(sizes.get("histogram"), k),
    }
    shown["privacy"] = _privacy(manifest)
    shown["metrics"] = {key: lookup(manifest, "metrics", key) for key in _MEASURES}
    shown["metrics"]["per_qi"] = _per_qi(manifest, k)
    shown["checks"] = [
        {"name": check.get("name"), "passed": check.get("passed"), "detail": ""}
        for check in lookup(manifest, "checks") or ()
        if isinstance(check, Mapping)
    ]
    shown["risk"] = _risk(manifest)
    shown["details"] = _details(manifest, k)
    _hide_differences(shown)
    return shown


def _hide_differences(shown: dict[str, Any]) -> None:
    """Where few were suppressed, leave out what tells how many: everybody can count the rows of the release."""
    if isinstance(lookup(shown, "rows", "suppressed"), FewerThan):
        shown["rows"].pop("input", None)
        shown["metrics"]["dm"] = None
        quasi = shown["details"]["quasi_identifiers"]
        last = max((point["share"] for point in quasi["closings"] or ()), default=1.0)
        quasi["closings"] = [{**point, "share": point["share"] / last} for point in quasi["closings"] or ()]
    if isinstance(shown.get("persons_suppressed"), FewerThan):
        shown.pop("persons", None)


def _count(value: float, k: float) -> float:
    return FewerThan(k) if 0 < value < k else float(value)


def _counts(found: Any, k: float) -> dict[str, float]:
    items = found.items() if isinstance(found, Mapping) else ()
    return {str(key): _count(value, k) for key, value in items if isinstance(value, int | float)}


def _per_qi(manifest: Manifest, k: float) -> dict[str, Any]:
    """Losses; levels only where each holds at least k rows or none."""
    per_qi = lookup(manifest, "metrics", "per_qi")
    shown: dict[str, Any] = {}
    for name, found in (per_qi or {}).items() if isinstance(per_qi, Mapping) else ():
        levels = lookup(found, "levels")
        large = isinstance(levels, Mapping) and all(not 0 < rows < k for rows in levels.values())
        shown[str(name)] = {"ncp": number(found, "ncp"), "levels": dict(levels) if large else None}
    return shown


def _privacy(manifest: Manifest) -> dict[str, Any]:
    """What was asked and reached; which sensitive values were named in a request is not told."""
    privacy = manifest.get("privacy")
    shown: dict[str, Any] = {}
    for name, found in privacy.items() if isinstance(privacy, Mapping) else ():
        if name == "k":
            shown[name] = found
        elif name == "unit":
            shown[name] = "person" if found else None
        elif isinstance(found, Mapping) and found.get("model"):
            words = _NAMED_VALUES if lookup(found, "asked", "values") else found.get("words", "")
            kind = {key: lookup(found, "asked", key) for key in ("kind", "distance")}
            shown[name] = {**{key: found.get(key) for key in _OF_A_MODEL}, "asked": kind, "words": words}
    return shown


def _risk(manifest: Manifest) -> dict[str, Any] | None:
    """What the release allows. The risk before is a fact about the source."""
    sizes = lookup(manifest, "risk", "after", "sizes")
    if not isinstance(sizes, Mapping):
        return None
    kept: dict[str, Any] = {key: sizes.get(key) for key in (*_SHARES, *_MODES, "counted")}
    attack = lookup(manifest, "risk", "attack")
    shown: dict[str, Any] = {"after": {"sizes": kept}, "before": {"sizes": {"counted": sizes.get("counted")}}}
    if isinstance(attack, Mapping):
        after = attack.get("after")
        told = {key: number(after or {}, key) for key in ("expected", "worst", "fewest")}
        shown["attack"] = {
            **{key: attack.get(key) for key in ("columns", "targets", "limit")},
            "before": {},
            "after": told,
        }
    return shown


def _details(manifest: Manifest, k: float) -> dict[str, Any]:
    """Published values, which whole classes carry, and sensitive ones that at least k persons of the release have."""
    columns = []
    for column in lookup(manifest, "details", "quasi_identifiers", "columns") or ():
        columns.append({"name": column.get("name"), "published": _labels(column.get("published") or ())})
    sensitive = []
    for column in lookup(manifest, "details", "sensitive", "columns") or ():
        values = [value for value in column.get("values") or () if _carried(value) >= k]
        sensitive.append({"name": column.get("name"), "values": values})
    quasi = {key: lookup(manifest, "details", "quasi_identifiers", key) for key in ("one_in", "closings")}
    spread = {key: lookup(manifest, "details", "sensitive", key) for key in ("one_in", "classes")}
    return {
        "quasi_identifiers": {**quasi, "columns": columns},
        "sensitive": {**spread, "columns": sensitive},
    }


def _labels(published: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Labels that all of a class share as a value; a range or set spells values that few of its members may carry."""
    shared = [{key: each.get(key) for key in ("label", "share")} for each in published if not each.get("made", True)]
    rest = sum(number(each, "share") or 0.0 for each in published if each.get("made", True))
    return [*shared, {"label": _SEVERAL, "share": rest}] if rest else shared


def _carried(value: Mapping[str, Any]) -> float:
    """Persons of the release who have a value, as far as they were counted."""
    persons = number(value, "persons") if "persons" in value else number(value, "rows")
    return persons or 0.0
