"""A suggestion as a configuration: a dict, and the same as YAML with the reasons as comments."""

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from kanon_spark.config.loader import literal
from kanon_spark.explore.suggest.hierarchies import is_number_text
from kanon_spark.explore.suggest.roles import Verdict
from kanon_spark.explore.suggest.suggestion import Suggestion, shown_values
from kanon_spark.report.facts import percent

_WIDTH = 118
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")


def config_of(draft: Suggestion) -> dict[str, Any]:
    """The configuration. Texts that look like `${NAME}` are written so that they stay what they are."""
    identifiers = {verdict.column: None for verdict in draft.of("identifier")}
    sensitive = {verdict.column: None for verdict in draft.of("sensitive")}
    quasi = {verdict.column: draft.drafts[verdict.column].spec() for verdict in draft.of("quasi-identifier")}
    columns: dict[str, Any] = {"identifiers": identifiers} if identifiers else {}
    columns["quasi_identifiers"] = quasi
    if sensitive:
        columns["sensitive"] = sensitive
    columns["other"] = "drop"
    config: dict[str, Any] = {"version": 1, "name": literal(draft.places.name)}
    if draft.places.source is not None:
        config["source"] = _source(draft.places.source)
    config["columns"] = columns
    config["privacy"] = {"k": draft.k, **({"unit": literal(draft.unit)} if draft.unit is not None else {})}
    if draft.places.sink is not None:
        config["sink"] = {"path": literal(draft.places.sink)}
    if draft.places.reports is not None:
        folder = literal(draft.places.reports)
        config["report"] = {"html": f"{folder}/report.html", "manifest": f"{folder}/manifest.json"}
    return config


def _source(section: Mapping[str, Any]) -> dict[str, Any]:
    source: dict[str, Any] = {key: literal(value) for key, value in section.items() if key != "options"}
    if "options" in section:
        source["options"] = {name: literal(value) for name, value in section["options"].items()}
    return source


def yaml_of(draft: Suggestion) -> str:
    """The configuration as YAML: what was found and what is to be decided first, then each column with its reason."""
    config = config_of(draft)
    columns = config["columns"]
    lines = [*_head(draft), f"version: {config['version']}", f"name: {scalar(config['name'])}"]
    if "source" in config:
        lines.append(f"source: {flow(config['source'])}")
    lines += ["", "columns:"]
    if "identifiers" in columns:
        lines.append("  identifiers: # dropped")
        for verdict in draft.of("identifier"):
            lines += _entry(draft, verdict, f"{scalar(verdict.column)}:")
    lines.append("  quasi_identifiers: # made coarser, until every combination is shared by k")
    for verdict in draft.of("quasi-identifier"):
        spec = columns["quasi_identifiers"][verdict.column]
        lines += _entry(draft, verdict, f"{scalar(verdict.column)}: {flow(spec)}")
    if "sensitive" in columns:
        lines.append("  sensitive: # published as it is")
        for verdict in draft.of("sensitive"):
            lines += _entry(draft, verdict, f"{scalar(verdict.column)}:")
    lines.append("  other: drop")
    dropped = draft.of("drop")
    if dropped:
        lines += _comment("Dropped so, unless you give them a role above:", "  ")
    for verdict in dropped:
        lines += _comment(f"{scalar(verdict.column)}: {_reason(draft, verdict)}", "  ", "- ")
    lines += ["", "privacy:", f"  k: {draft.k}"]
    if "unit" in config["privacy"]:
        lines += _comment("k counts persons, not rows: this id stands in several rows.", "  ")
        lines.append(f"  unit: {scalar(config['privacy']['unit'])}")
    lines += _models(draft)
    lines += [""] if "sink" in config or "report" in config else []
    lines += [f"{key}: {flow(config[key])}" for key in ("sink", "report") if key in config]
    return "\n".join(lines) + "\n"


def scalar(text: str) -> str:
    """A text as YAML reads it back, in quotes where it needs them, on one line.

    >>> [scalar(each) for each in ("age", "a b", "no", "1", "hours: day")]
    ['age', '"a b"', '"no"', '"1"', '"hours: day"']
    """
    if _PLAIN.fullmatch(text) and yaml.safe_load(text) == text:
        return text
    return str(yaml.safe_dump(text, default_style='"', allow_unicode=True, width=float("inf"))).strip()


def flow(value: object) -> str:
    """Plain values on one line.

    >>> flow({"hierarchy": {"prefix": {"keep": [4, 3]}}, "path": "a b"})
    '{hierarchy: {prefix: {keep: [4, 3]}}, path: "a b"}'
    """
    match value:
        case dict():
            return "{" + ", ".join(f"{scalar(key)}: {flow(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(flow, value)) + "]"
        case str():
            return scalar(value)
    return str(yaml.safe_dump(value)).splitlines()[0]  # YAML reads 1e-09 as text, and 1.0e-09 as a number


def _entry(draft: Suggestion, verdict: Verdict, line: str) -> list[str]:
    return [*_comment(_reason(draft, verdict), "    "), f"    {line}"]


def _reason(draft: Suggestion, verdict: Verdict) -> str:
    reason = verdict.reason[:1].upper() + verdict.reason[1:]
    if verdict.column in draft.drafts:
        reason += f". Levels: {draft.drafts[verdict.column].words}"
    if draft.show_values and (values := shown_values(verdict)):
        reason += f". Values: {', '.join(map(json.dumps, values))}"
    return f"{reason}."


def _comment(text: str, indent: str, bullet: str = "") -> list[str]:
    """Text as comment lines; further lines of a bullet stand under its first."""
    width = _WIDTH - len(indent) - len(bullet)
    wrapped = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}# {bullet if not place else ' ' * len(bullet)}{line}" for place, line in enumerate(wrapped)]


def _head(draft: Suggestion) -> list[str]:
    table, found = draft.table, draft.uniqueness
    people = "persons" if found.counted == "persons" else "rows"
    size = f"{table.rows:,} rows" + (f" of {found.records:,} persons" if people == "persons" else "")
    lines = _comment(
        f"A draft by `kanon suggest`, from {size} and {len(table.columns)} columns. It can be run as it stands, but no "
        "rule knows what others know: read it, and decide what is asked below.",
        "",
    )
    if table.one_in > 1:
        lines += _comment(
            f"Distinct values were counted in all rows (approximately where there are many); shapes of texts and "
            f"quantiles of numbers are those of one in {table.one_in:,} rows.",
            "",
        )
    lines.append("#")
    qis = [verdict.column for verdict in draft.of("quasi-identifier")]
    plural = f"their combination of the {len(qis)} quasi-identifiers" if len(qis) > 1 else f"their {scalar(qis[0])}"
    lines += _comment(
        f"What was found: {percent(found.share)} of the {people} are the only ones with {plural}; "
        f"{percent(found.small)} share it with fewer than {draft.k - 1} others.",
        "",
    )
    for each in found.worst:
        told = f"{_listed(each.columns)} alone single out {percent(each.unique_share)} of the rows"
        lines += _comment(f"{told}.", "", "- ")
    lines += ["#", "# Please decide:"]
    for text in _questions(draft):
        lines += _comment(text, "", "- ")
    return [*lines, ""]


def _questions(draft: Suggestion) -> Iterable[str]:
    """What a person must decide, in the order of how much hangs on it."""
    if draft.unit is not None:
        yield f"Is {scalar(draft.unit)} the person to protect? k counts its different values."
    else:
        yield (
            "Is every row another person? k counts rows. If persons have several, name the column of their id as "
            "privacy.unit."
        )
    sensitive = [verdict.column for verdict in draft.of("sensitive")]
    if sensitive:
        yield (
            f"{_listed(sensitive)}: published exactly. Is that right, and can nobody outside know the values? If "
            "somebody may, make the column a quasi-identifier."
        )
    else:
        yield "No column is published unchanged. If one is what readers want the data for, name it as sensitive."
    quasi = draft.of("quasi-identifier")
    guessed = [verdict.column for verdict in quasi if verdict.unsure]
    if guessed:
        yield (
            f"{_listed(guessed)}: made coarser for their values alone. Can others know them? If not, they may be "
            "sensitive instead."
        )
    unsure = [verdict.column for verdict in draft.verdicts if verdict.unsure and verdict.role != "quasi-identifier"]
    if unsure:
        yield f"Is it right to leave {_listed(unsure)} out? The reasons stand with `other: drop`, or beside the column."
    numbers = [
        each.column for each in quasi if is_number_text(each.profile) and not draft.drafts[each.column].hierarchy
    ]
    if numbers:
        yield f"Make {_listed(numbers)} a column of numbers in the source if it is a quantity: it gets intervals then."
    yield "Are the levels those that readers need? Each is only published where a class needs it."
    yield f"Is k = {draft.k} enough? 5 is usual among partners, 20 and more for the public."


def _models(draft: Suggestion) -> list[str]:
    """Advice beside k: what is left out of the draft, and why."""
    lines = []
    sensitive = draft.of("sensitive")
    several = [verdict for verdict in sensitive if verdict.profile.values >= 3]
    if several:
        whose = "" if len(several) == len(sensitive) else f" of {_listed([verdict.column for verdict in several])}"
        lines += _comment(
            f"l_diversity: 2{whose} would keep classes from telling what all of them have in common; it costs detail, "
            "so it is yours to choose. See kanon_spark/privacy/README.md.",
            "  ",
        )
    lines += _comment(
        "max_suppression stays 0: no row needs to be left out. Allow 0.01 if a few rare rows make many others coarse.",
        "  ",
    )
    return lines


def _listed(names: Sequence[str]) -> str:
    shown = [scalar(name) for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
