"""Each column's role, from its profile alone. No Spark here: profile in, roles out.

The rules are tried in the order of `_RULES`, the first that applies decides; `explore/README.md` tells them in words.
Whatever is published unchanged must be named as sensitive, and few columns earn that: who is in doubt is made coarser
or dropped.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kanon_spark.explore.suggest.fits import fitting_reference, reads_like_diagnoses
from kanon_spark.explore.suggest.patterns import (
    CODE,
    IDENTIFYING,
    ISO_DATE,
    OTHER_DATE,
    PHONE,
    SENTENCE,
    holds_email,
    identifying,
)
from kanon_spark.explore.suggest.profile import ColumnProfile, TableProfile
from kanon_spark.explore.suggest.words import POSTAL_CODE, QUASI_IDENTIFIERS, Name, read_name

Role = Literal["identifier", "quasi-identifier", "sensitive", "drop"]

MOSTLY = 0.5  # so large a share of a column has the shape
SOME = 0.02  # enough to keep a column from being published
UNIQUE = 0.9  # so many different values per row: nearly every row has its own
VARIED = 0.5  # so many that most rows are told apart by this text alone
KEYS = 0.2  # so many that a number or key stands for things of which each has few rows
LONG_TEXT = 60  # characters on average
FEW_VALUES = 50  # a column that no rule knows may become a quasi-identifier with at most so many values
ENOUGH = 6  # such columns join only until there are so many quasi-identifiers
MOST = 12  # quasi-identifiers in all
_MANY_ROWS = 100  # in smaller tables all values are rare
_POSTAL_LENGTH = 10


@dataclass(frozen=True)
class Verdict:
    """One column's role, and why.

    Attributes:
        profile: The column.
        name: What its name says.
        role: The role.
        rule: Short name of the rule that decided.
        reason: The same for people: counts and shares, never values.
        unsure: A person should look at it.
    """

    profile: ColumnProfile
    name: Name
    role: Role
    rule: str
    reason: str
    unsure: bool = False

    @property
    def column(self) -> str:
        """The column's name."""
        return self.profile.name


Ruling = tuple[Role, str, str, bool]


def decide_roles(table: TableProfile, *, k: int) -> tuple[Verdict, ...]:
    """A role for every column, in the table's order."""
    verdicts = [_judged(column, k) for column in table.columns]
    return tuple(_within_bounds(_joined_by_content(verdicts, k)))


def _judged(column: ColumnProfile, k: int) -> Verdict:
    name = read_name(column.name)
    for rule in _RULES:
        found = rule(column, name, k)
        if found is not None:
            return Verdict(column, name, *found)
    told = _values(column)
    return Verdict(column, name, "drop", "unsure", f"nothing tells what it is; {told}", True)


def _unsupported(column: ColumnProfile, name: Name, k: int) -> Ruling | None:
    if column.kind is None:
        return "drop", "type", f"type {column.type.split('<')[0]}: cannot be made coarser", False
    return None


def _constant(column: ColumnProfile, name: Name, k: int) -> Ruling | None:
    if column.filled == 0:
        return "drop", "constant", "empty in every row", False
    if column.values <= 1 and column.filled == column.rows:
        return "drop", "constant", "one value only: it tells nothing", False
    return None


def _by_pattern(column: ColumnProfile, name: Name, k: int) -> Ruling | None:
    postal = name.of("quasi") == POSTAL_CODE and column.lengths is not None and column.lengths.longest <= _POSTAL_LENGTH
    # Postal codes such as 012-3456 look like the beginning of a phone number.
    shares = {shape: column.share(shape) for shape in IDENTIFYING if not (postal and shape == PHONE)}
    shape = max(shares, key=lambda each: shares[each])
    if shares[shape] >= MOSTLY:
        return "identifier", "pattern", f"{_percent(shares[shape])} of its texts look like {shape}", False
    if sum(shares.values()) >= SOME:
        return "identifier", "pattern", f"{_percent(sum(shares.values()))} of its texts look like {shape} or such", True
    return None


def _identifier_by_name(column: ColumnProfile, name: Name, k: int) -> Ruling | None:
    # Flags and times about an identifier (phone_verified, last_login) are none.
    if column.kind not in {"text", "integer", "real"}:
        return None
    if name.person_id:
        return "identifier", "person id", f"a person's id, by the column's name; {_values(column)}", False
    sense = name.of("identifier")
    if sense is None:
        return None
    return "identifier", "name", f"{sense.title}, by the column's name; {_values(column)}", False


def _time(column: ColumnProfile, name: Name, k: int) -> Ruling | None:
    if column.kind in {"date", "timestamp"}:
        sense = name.of("quasi")
        what = sense.title if sense is not None else "an event"
        return "quasi-identifier", "time", f"the time of {what}, which others may know; {_values(column)}", False
    if column.kind == "text" and column.share(ISO_DATE) > UNIQUE:
        return "quasi-identifier", "time", f"dates as text, year first; {_values(column)}", False
    if column.kind == "text" and column.share(OTHER_DATE) > UNIQUE:
        return "drop", "time", "dates as text, not year first: make it a date in the source to keep it", True
    return None


def _free_text(column: ColumnProfile, name: Name, k: int) -> Ruling | None:
    if column.kind != "text" or column.lengths is None or column.rows_per_value >= max(k, 10):
        return None
    if column.lengths.mean > LONG_TEXT or column.share(SENTENCE) > MOSTLY:
        return "drop", "free text", "free text, which may hold anything", False
    return None


def _keys(column: ColumnProfile, name: Name, k: int) -> Ruling | None:
    if name.id_like and column.kind in {"text", "integer"} and column.distinction >= KEYS:
        return "identifier", "key", f"a number or key, by the column's name; {_values(column)}", False
    return None


def _quasi_by_name(column: ColumnProfile, name: Name, k: int) -> Ruling | None:
    sense = name.of("quasi")
    if sense is None:
        return None
    codes = column.share(CODE) > UNIQUE
    if column.kind == "text" and column.distinction > VARIED and column.rows >= _MANY_ROWS and not codes:
        reason = f"{sense.title}, by the column's name, but hardly a text occurs twice ({_values(column)})"
        return "drop", "varied", reason, True
    return "quasi-identifier", "name", f"{sense.title}, by the column's name; {_values(column)}", False


def _sensitive_by_name(column: ColumnProfile, name: Name, k: int) -> Ruling | None:
    sense = name.of("sensitive")
    if sense is None:
        return None
    about = f"{sense.title}, by the column's name; {_values(column)}"
    if column.rows_per_value < k:
        why = f"fewer than {k} rows share one on average, so that it tells rows apart; round or group it to keep it"
        return "drop", "sensitive but rare", f"{about}: {why}", True
    if column.kind == "text" and column.counts is None:
        return "drop", "sensitive but rare", f"{about}, too many to look at each", True
    if column.kind == "text" and any(identifying(text) or holds_email(text) for text in column.counts or ()):
        return "drop", "sensitive but identifying", f"{about}; some hold an address or a number of a person", True
    if column.counts is not None and (rare := sum(rows for rows in column.counts.values() if rows < k)):
        about += f"; in {rare:,} rows one that fewer than {k} share"
    reference = fitting_reference(column, name)
    if reference is not None:
        about += f"; the taxonomy {reference.name} knows them all, should t_closeness be asked for"
    return "sensitive", "name", about, False


def _unique(column: ColumnProfile, name: Name, k: int) -> Ruling | None:
    if column.distinction < UNIQUE:
        return None
    if column.kind == "text" or (column.kind == "integer" and (name.id_like or _numbered(column))):
        return "identifier", "unique", f"nearly every row has its own value ({_values(column)})", False
    if column.kind in {"integer", "real"}:
        reason = f"nearly every row has its own number ({_values(column)}), as measurements and amounts do"
        return "drop", "unique", reason, True
    return None


def _numbered(column: ColumnProfile) -> bool:
    """Whether whole numbers look dealt out: without gaps, or all of the same many digits."""
    spread = column.spread
    if spread is None or spread.least < 0:
        return False
    dense = spread.largest - spread.least < 1.5 * column.filled
    digits = {len(str(int(spread.least))), len(str(int(spread.largest)))}
    return dense or (len(digits) == 1 and digits.pop() >= 6)


def _by_reference(column: ColumnProfile, name: Name, k: int) -> Ruling | None:
    if reads_like_diagnoses(column):
        reason = "reads like diagnoses (ICD-10): name it as sensitive if it is, it is not published on a guess"
        return "drop", "reference", reason, True
    reference = fitting_reference(column, name)
    if reference is None or column.kind != "text":
        return None
    return "quasi-identifier", "reference", f"{reference.title}, by its values; {_values(column)}", False


_RULES: tuple[Callable[[ColumnProfile, Name, int], Ruling | None], ...] = (
    _unsupported,
    _constant,
    _by_pattern,
    _identifier_by_name,
    _time,
    _free_text,
    _keys,
    _quasi_by_name,
    _sensitive_by_name,
    _unique,
    _by_reference,
)


def _joined_by_content(verdicts: Sequence[Verdict], k: int) -> list[Verdict]:
    """Let columns that no rule knows become quasi-identifiers while there are few, the most separating first."""
    room = ENOUGH - sum(verdict.role == "quasi-identifier" for verdict in verdicts)
    unknown = [verdict for verdict in verdicts if verdict.rule == "unsure" and _is_grouping(verdict.profile, k)]
    unknown.sort(key=lambda verdict: -(verdict.profile.separation or 0.0))
    joining = {verdict.column for verdict in unknown[: max(0, room)]}
    left = {verdict.column for verdict in unknown[max(0, room) :]}
    chosen = ENOUGH - room + len(joining)
    done = []
    for verdict in verdicts:
        told = f"{_values(verdict.profile)}; two rows differ in it with a chance of {_separation(verdict.profile)}"
        if verdict.column in joining:
            reason = f"by its values alone: {told}"
            verdict = replace(verdict, role="quasi-identifier", rule="separation", reason=reason, unsure=True)
        elif verdict.column in left:
            full = f"there are {chosen} quasi-identifiers without it, and each more makes the others coarser"
            verdict = replace(verdict, reason=f"{verdict.reason}; {full}")
        done.append(verdict)
    return done


def _is_grouping(column: ColumnProfile, k: int) -> bool:
    """Few values, each shared by many rows."""
    return column.counts is not None and len(column.counts) <= FEW_VALUES and column.rows_per_value >= 2 * k


def _within_bounds(verdicts: Sequence[Verdict]) -> Iterable[Verdict]:
    """At most `MOST` quasi-identifiers: those that say most about a person by their name first."""
    chosen = [verdict for verdict in verdicts if verdict.role == "quasi-identifier"]
    kept = {verdict.column for verdict in sorted(chosen, key=_importance)[:MOST]}
    for verdict in verdicts:
        if verdict.role == "quasi-identifier" and verdict.column not in kept:
            reason = f"{verdict.reason}; there are {MOST} other quasi-identifiers, and each more makes them coarser"
            verdict = replace(verdict, role="drop", rule="too many", reason=reason, unsure=True)
        yield verdict


def _importance(verdict: Verdict) -> int:
    sense = verdict.name.of("quasi")
    return QUASI_IDENTIFIERS.index(sense) if sense is not None else len(QUASI_IDENTIFIERS)


def unit_candidates(verdicts: Sequence[Verdict], *, k: int) -> list[str]:
    """Identifiers that may stand for the person, the likeliest first: they are the unit if they repeat.

    Counting by any id that repeats is at least as strict as counting rows.
    """
    ranked = []
    for place, verdict in enumerate(verdicts):
        column = verdict.profile
        if verdict.role != "identifier" or column.filled < column.rows / 2:
            continue
        if verdict.rule == "person id" and (verdict.name.id_like or column.values >= k):
            rank = 0
        elif verdict.rule in {"name", "pattern"} and not _shared_by_many(verdict) and column.values >= 10 * k:
            rank = 1
        elif verdict.rule in {"key", "unique"} and column.distinction < UNIQUE and column.values >= 10 * k:
            rank = 2
        else:
            continue
        ranked.append((rank, column.rows - column.filled, place, verdict.column))
    return [name for *_, name in sorted(ranked)]


def _shared_by_many(verdict: Verdict) -> bool:
    """Names and addresses repeat although the persons differ."""
    sense = verdict.name.of("identifier")
    return sense is not None and any(word in sense.title for word in ("name", "street", "address", "picture", "login"))


def _values(column: ColumnProfile) -> str:
    about = "" if column.counts is not None or not column.values else "about "
    empty = column.rows - column.filled
    text = f"{about}{column.values:,} value{'s' if column.values != 1 else ''} in {column.rows:,} rows"
    return text + (f", {_percent(empty / column.rows)} empty" if empty else "")


def _separation(column: ColumnProfile) -> str:
    return _percent(column.separation or 0.0)


def _percent(share: float) -> str:
    from kanon_spark.report.facts import percent

    return percent(share)
