"""What a manifest says of the risk to be found, before and after, each number with a sentence.

As in `facts.py`, whatever is missing from a manifest is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kanon_spark.report.facts import Manifest, count, lookup, models, number, percent


@dataclass(frozen=True)
class RiskLine:
    """One measure: its name, what it was on the source and is on the release, what that means, and its formula."""

    name: str
    before: str
    after: str
    sentence: str
    formula: str


def _line(name: str, sides: Sequence[str], sentence: str, formula: str) -> RiskLine:
    before, after = sides
    return RiskLine(name, before, after, sentence, formula)


def risk_lines(manifest: Manifest) -> list[RiskLine]:
    """Risks that follow from the sizes of the classes."""
    sides = [lookup(manifest, "risk", side, "sizes") for side in ("before", "after")]
    if not isinstance(sides[0], Mapping):
        return []
    each = "person" if sides[0].get("counted") == "persons" else "row"
    asked: list[tuple[str, Sequence[str], str, str]] = [
        (
            "unique",
            ("uniqueness",),
            f"Share of the {each}s that nobody else is like: whoever knows them finds them.",
            f"{each}s in classes of one / {each}s",
        ),
        (
            "prosecutor, highest",
            ("prosecutor", "highest"),
            f"The best chance to pick the right {each} for someone who is known to be in the table; at most 1/k after.",
            "1 / smallest class",
        ),
        (
            "prosecutor, average",
            ("prosecutor", "average"),
            "The same chance, averaged over everyone.",
            f"classes / {each}s in them",
        ),
        (
            "journalist, highest",
            ("journalist", "highest"),
            "The same for an attacker who does not know who is in the table.",
            "1 / smallest class in the population",
        ),
        (
            "journalist, average",
            ("journalist", "average"),
            "The same, averaged over everyone.",
            f"classes / their {each}s in the population, or Σ class / its size there / {each}s, whichever is more",
        ),
        (
            "marketer",
            ("marketer",),
            "The share that is named right if everyone is matched with somebody.",
            f"Σ class / its size in the population / {each}s",
        ),
    ]
    lines = [
        _line(name, [percent(number(side or {}, *path)) for side in sides], sentence, formula)
        for name, path, sentence, formula in asked
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
            f"Σ classes with 1 / class > {threshold:g} / records",
        )
        for threshold, share in shares[0].items()
        if threshold
    ]


def _is_share(part: Any) -> bool:
    return isinstance(part, Mapping) and all(isinstance(part.get(key), int | float) for key in ("threshold", "share"))


@dataclass(frozen=True)
class Telling:
    """How much columns tell of who somebody is, by themselves or together: their names, and numbers for each side."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def telling_columns(manifest: Manifest) -> list[Telling]:
    """Distinct values, distinction and separation of each quasi-identifier, the most telling first."""

    def numbers(each: Mapping[str, Any]) -> tuple[str, ...]:
        shares = (percent(number(each, key)) for key in ("distinction", "separation"))
        return (count(number(each, "distinct")), *shares)

    return _telling(manifest, "columns", lambda each: str(each.get("name")), numbers)


def telling_combinations(manifest: Manifest) -> list[Telling]:
    """Unique rows and rows per combination of values, of the riskiest combinations of columns."""

    def numbers(each: Mapping[str, Any]) -> tuple[str, ...]:
        size = number(each, "average_size")
        return (percent(number(each, "unique_share")), "-" if size is None else f"{size:,.1f}")

    return _telling(manifest, "combinations", lambda each: " + ".join(map(str, each.get("columns") or ())), numbers)


def _telling(
    manifest: Manifest,
    part: str,
    name: Callable[[Mapping[str, Any]], str],
    numbers: Callable[[Mapping[str, Any]], tuple[str, ...]],
) -> list[Telling]:
    """Both sides by name, in the order of the source; a side that does not name something says nothing of it."""
    sides = []
    for side in ("before", "after"):
        found = lookup(manifest, "risk", side, part)
        listed = [each for each in found if isinstance(each, Mapping)] if isinstance(found, list | tuple) else []
        sides.append({name(each): numbers(each) for each in listed})
    nothing = ("-",) * len(next((numbers for side in sides for numbers in side.values()), ()))
    return [
        Telling(each, *(side.get(each, nothing) for side in sides)) for each in dict.fromkeys([*sides[0], *sides[1]])
    ]


def attack_lines(manifest: Manifest) -> list[RiskLine]:
    """The linkage attack, where it was carried out."""
    sides = [lookup(manifest, "risk", "attack", side) for side in ("before", "after")]
    if not isinstance(sides[0], Mapping):
        return []
    limit = number(manifest, "risk", "attack", "limit")
    allowed = "" if limit is None else f" k allows {percent(limit)} on the release."
    asked: list[tuple[str, str, Callable[[float | None], str], str, str]] = [
        (
            "expected success",
            "expected",
            percent,
            "Mean chance to pick the right one among the rows that fit.",
            "mean over the targets of 1 / candidates",
        ),
        (
            "easiest target",
            "worst",
            percent,
            f"The chance for the target that is easiest to find.{allowed}",
            "largest 1 / candidates",
        ),
        ("its candidates", "fewest", count, "Everyone whom that target may be.", "fewest candidates, but for none"),
        ("targets without any", "unmatched", count, "Their rows are not in the release.", "targets without candidates"),
    ]
    lines = [
        _line(name, [show(number(side or {}, key)) for side in sides], sentence, formula)
        for name, key, show, sentence, formula in asked
        if any(number(side or {}, key) is not None for side in sides)
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
        told = [
            (
                "guessed right",
                "right",
                "By what most of the rows have that may be the target.",
                "targets with their candidates' most frequent value / targets",
            ),
            (
                "base rate",
                "base",
                "By what most of all rows have, without looking for anybody.",
                "targets with the most frequent value of all / targets",
            ),
            ("how sure", "confidence", "Share of the candidates that have the guessed value.", _SHARE.format("mean")),
            ("most sure", "highest", "The same for the target whose candidates agree most.", _SHARE.format("largest")),
        ]
        # Manifests of earlier runs do not tell the largest share.
        told = [line for line in told if line[1] != "highest" or number(guess, "highest") is not None]
        for name, key, sentence, formula in told:
            values = [percent(number(side, key)) for side in (guess, other)]
            meaning = f"{sentence}{asked}{_allowed(other, asked)}" if name == told[-1][0] else sentence
            lines.append(_line(f"{column}: {name}", values, meaning, formula))
    return lines


_SHARE = "{} share of the candidates"


def _allowed(guess: Mapping[str, Any], asked: str) -> str:
    """What the models that were asked for limit the largest share on the release to."""
    limit, common = number(guess, "limit"), number(guess, "common")
    if limit is not None:
        return f" {guess.get('limited_by')} allows at most {percent(limit)} on the release."
    none = " That sets no limit to this share." if asked and common is not None else ""
    return f"{none} Of all its rows {percent(common)} have the most frequent value." if common is not None else ""


def attack_title(manifest: Manifest) -> str:
    """What the attacker held and knew."""
    columns = lookup(manifest, "risk", "attack", "columns")
    known = ", ".join(map(str, columns)) if isinstance(columns, Sequence) and not isinstance(columns, str) else ""
    return f"{count(number(manifest, 'risk', 'attack', 'targets'))} rows of the source were looked for by {known}."


def risk_notes(manifest: Manifest) -> list[str]:
    """What a reader must know to read the numbers right."""
    notes = lookup(manifest, "risk", "notes")
    return [str(note) for note in notes] if isinstance(notes, list | tuple) else []
