"""What a manifest says of the risk to be found, before and after, each number with a sentence.

As in `facts.py`, whatever is missing from a manifest is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kanon_spark.report.facts import Manifest, count, lookup, models, number, percent


@dataclass(frozen=True)
class RiskLine:
    """One measure: its name, what it was on the source and is on the release, and what that means."""

    name: str
    before: str
    after: str
    sentence: str


def _line(name: str, sides: Sequence[str], sentence: str) -> RiskLine:
    before, after = sides
    return RiskLine(name, before, after, sentence)


def risk_lines(manifest: Manifest) -> list[RiskLine]:
    """Risks that follow from the sizes of the classes."""
    sides = [lookup(manifest, "risk", side, "sizes") for side in ("before", "after")]
    if not isinstance(sides[0], Mapping):
        return []
    each = "person" if sides[0].get("counted") == "persons" else "row"
    asked: list[tuple[str, Sequence[str], Callable[[float | None], str], str]] = [
        (
            "unique",
            ("uniqueness",),
            percent,
            f"Share of the {each}s that nobody else is like: whoever knows them finds them.",
        ),
        (
            "prosecutor, highest",
            ("prosecutor", "highest"),
            percent,
            f"The best chance to pick the right {each} for someone who is known to be in the table; at most 1/k after.",
        ),
        ("prosecutor, average", ("prosecutor", "average"), percent, "The same chance, averaged over everyone."),
        (
            "journalist, highest",
            ("journalist", "highest"),
            percent,
            "The same for an attacker who does not know who is in the table.",
        ),
        ("marketer", ("marketer",), percent, "The share that is named right if everyone is matched with somebody."),
    ]
    lines = [
        _line(name, [show(number(side or {}, *path)) for side in sides], sentence)
        for name, path, show, sentence in asked
    ]
    return lines[:3] + _above(sides) + lines[3:]


def _above(sides: Sequence[Any]) -> list[RiskLine]:
    """How many have a higher risk than each threshold."""
    shares = []
    for side in sides:
        parts = lookup(side or {}, "prosecutor", "above") or ()
        shares.append({part["threshold"]: part["share"] for part in parts if _is_share(part)})
    return [
        RiskLine(
            f"prosecutor, above {threshold:g}",
            percent(share),
            percent(shares[1].get(threshold)),
            f"Share of the records in classes smaller than {1 / threshold:.3g}.",
        )
        for threshold, share in shares[0].items()
        if threshold
    ]


def _is_share(part: Any) -> bool:
    return isinstance(part, Mapping) and all(isinstance(part.get(key), int | float) for key in ("threshold", "share"))


def attack_lines(manifest: Manifest) -> list[RiskLine]:
    """The linkage attack, where it was carried out."""
    sides = [lookup(manifest, "risk", "attack", side) for side in ("before", "after")]
    if not isinstance(sides[0], Mapping):
        return []
    limit = number(manifest, "risk", "attack", "limit")
    allowed = "" if limit is None else f" k allows {percent(limit)} on the release."
    asked: list[tuple[str, str, Callable[[float | None], str], str]] = [
        ("expected success", "expected", percent, "Mean chance to pick the right one among the rows that fit."),
        ("easiest target", "worst", percent, f"The chance for the target that is easiest to find.{allowed}"),
        ("its candidates", "fewest", count, "Everyone whom that target may be."),
        ("targets without any", "unmatched", count, "Their rows are not in the release."),
    ]
    lines = [
        _line(name, [show(number(side or {}, key)) for side in sides], sentence) for name, key, show, sentence in asked
    ]
    return lines + _guesses(manifest, sides)


def _guesses(manifest: Manifest, sides: Sequence[Any]) -> list[RiskLine]:
    """What the attacker learns of each sensitive column, against the base rate and what was asked of the column."""
    promised: dict[str, list[str]] = {}
    for model in models(manifest):
        promised.setdefault(model.column or "", []).append(model.words)
    before, after = ([each for each in (side or {}).get("guesses", ()) if isinstance(each, Mapping)] for side in sides)
    lines = []
    for place, guess in enumerate(before):
        column = str(guess.get("column", ""))
        other = after[place] if place < len(after) else {}
        asked = f" Asked: every class has {' and '.join(promised[column])}." if column in promised else ""
        for name, key, sentence in (
            ("guessed right", "right", "By what most of the rows have that may be the target."),
            ("base rate", "base", "By what most of all rows have, without looking for anybody."),
            ("how sure", "confidence", f"Share of the candidates that have the guessed value.{asked}"),
        ):
            values = [percent(number(side, key)) for side in (guess, other)]
            lines.append(_line(f"{column}: {name}", values, sentence))
    return lines


def attack_title(manifest: Manifest) -> str:
    """What the attacker held and knew."""
    columns = lookup(manifest, "risk", "attack", "columns")
    known = ", ".join(map(str, columns)) if isinstance(columns, Sequence) and not isinstance(columns, str) else ""
    return f"{count(number(manifest, 'risk', 'attack', 'targets'))} rows of the source were looked for by {known}."


def risk_notes(manifest: Manifest) -> list[str]:
    """What a reader must know to read the numbers right."""
    notes = lookup(manifest, "risk", "notes")
    return [str(note) for note in notes] if isinstance(notes, list | tuple) else []
