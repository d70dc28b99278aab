"""The HTML report: one file that needs no network, from the manifest alone.

Each section is a small template in `templates/` and a function here that gathers what it shows; a section with
nothing to show is left out. Everything is escaped, and the page forbids scripts altogether.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from kanon_spark.report import detail_facts, facts, risk_facts
from kanon_spark.report.charts import bar_chart, curve_chart, pair_chart, spread_chart
from kanon_spark.report.external import external
from kanon_spark.report.facts import Manifest
from kanon_spark.report.figures import figures

if TYPE_CHECKING:
    from jinja2 import Environment

Edition = Literal["internal", "external"]
Section = dict[str, Any]
_FIRST = (
    "k achieved",
    "re-identification, at worst",
    "rows released",
    "rows suppressed",
    "persons",
    "persons released",
    "persons suppressed",
    "loss",
    "lower bound",
)


def render_html(manifest: Manifest, *, edition: Edition = "internal") -> str:
    """The report as one self-contained page.

    Args:
        manifest: Everything that is known about a run.
        edition: `internal`, with sample rows, counts and the configuration; or `external`, which may travel with the
            release: no value that fewer than k persons of it carry, no count under k.

    >>> page = render_html({"name": "<script>", "privacy": {"k": {"asked": 5, "achieved": 5}}})
    >>> "<script" in page
    False
    """
    if edition == "external":
        manifest = external(manifest)
    sections = [
        {"template": f"{name}.html.j2", "anchor": name.replace("_", "-"), "title": title, **content}
        for name, (title, gather) in _SECTIONS.items()
        if (content := gather(manifest)) is not None
    ]
    page = environment().get_template("report.html.j2")
    return page.render(
        name=str(manifest.get("name") or "release"),
        run_id=str(manifest.get("run_id") or ""),
        finished=str(manifest.get("finished") or ""),
        edition=edition,
        verdict=facts.verdict(manifest),
        asked=facts.asked(manifest),
        proved=facts.proved(manifest),
        headline=[figure for figure in figures(manifest) if figure.name in _FIRST],
        warnings=facts.warnings(manifest),
        sections=sections,
    )


@cache
def environment() -> "Environment":
    """The templates of all pages; whatever they show is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("kanon_spark.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _before_after(manifest: Manifest) -> Section | None:
    rows = facts.samples(manifest)
    if rows is None:
        return None
    pairs = [
        {
            "before": [_cell(before.get(name)) for name in rows.qi],
            "after": [_cell(after.get(name)) for name in rows.qi],
            "kept": [_cell(after.get(name)) for name in rows.kept],
        }
        for before, after in zip(rows.before, rows.after, strict=True)
    ]
    return {
        "qi": rows.qi,
        "kept": rows.kept,
        "rows": pairs,
        "dropped": facts.dropped(manifest),
        "pseudonyms": facts.pseudonyms(manifest),
    }


def _cell(value: Any) -> str:
    return "null" if value is None else str(value)


def _figures(manifest: Manifest) -> Section | None:
    found = figures(manifest)
    return {"figures": found} if found else None


def _models(manifest: Manifest) -> Section | None:
    found = [model.figure for model in facts.models(manifest)]
    return {"models": found} if found else None


def _risk(manifest: Manifest) -> Section | None:
    lines = risk_facts.risk_lines(manifest)
    if not lines:
        return None
    return {
        "lines": lines,
        "columns": risk_facts.telling_columns(manifest),
        "combinations": risk_facts.telling_combinations(manifest),
        "attack": risk_facts.attack_lines(manifest),
        "title_of_attack": risk_facts.attack_title(manifest),
        "notes": risk_facts.risk_notes(manifest),
    }


def _loss(manifest: Manifest) -> Section | None:
    found = facts.losses(manifest)
    if not found:
        return None
    bars = [(name, ncp, facts.percent(ncp)) for name, ncp in found]
    worst = max(found, key=lambda pair: pair[1])
    return {
        "chart": bar_chart("Loss per quasi-identifier", bars, whole=1.0),
        "worst": worst[0],
        "most": facts.percent(worst[1]),
        "levels": [line for line in detail_facts.published_levels(manifest) if line[2]],
    }


def _distributions(manifest: Manifest) -> Section | None:
    found = detail_facts.distributions(manifest)
    if not found:
        return None
    columns = [{**each, "chart": pair_chart(f"{each['name']} before and after", each["lines"])} for each in found]
    return {"columns": columns, "one_in": detail_facts.sampled(manifest, "quasi_identifiers")}


def _sensitive(manifest: Manifest) -> Section | None:
    found = detail_facts.sensitive(manifest)
    if not found:
        return None
    columns = [{**each, "chart": spread_chart(f"{each['name']} over the classes", each["lines"])} for each in found]
    return {"columns": columns, "one_in": detail_facts.sampled(manifest, "sensitive")}


def _way(manifest: Manifest) -> Section | None:
    """How the method got there."""
    points, lengths = detail_facts.closings(manifest), detail_facts.tree_lengths(manifest)
    names, steps = detail_facts.trace(manifest)
    if not points and not lengths and not steps:
        return None
    return {
        "closings": curve_chart("Rows by their loss", points, across="loss of a row", up="rows in classes up to it"),
        "lengths": bar_chart("Edges of the spanning tree by length", lengths),
        "names": names,
        "steps": steps,
    }


def _config(manifest: Manifest) -> Section | None:
    text = detail_facts.config_text(manifest)
    return {"text": text} if text else None


def _classes(manifest: Manifest) -> Section | None:
    found = facts.class_sizes(manifest)
    if not found:
        return None
    bars = [(f"{size} rows", many, facts.count(many)) for size, many in found]
    return {"chart": bar_chart("Classes by size", bars)}


def _checks(manifest: Manifest) -> Section | None:
    found = facts.checks(manifest)
    return {"checks": found} if found else None


def _limits(manifest: Manifest) -> Section | None:
    return {"limits": facts.LIMITS}


def _run(manifest: Manifest) -> Section | None:
    named = {
        "method": facts.method_text(manifest),
        "signatures": facts.count(facts.number(manifest, "signatures")),
        "blocks": facts.count(facts.number(manifest, "blocks")),
        "started": manifest.get("started"),
        "finished": manifest.get("finished"),
        "run": manifest.get("run_id"),
        "configuration (SHA-256)": manifest.get("config_sha256"),
        "content of the release": manifest.get("content_hash"),
    }
    versions = facts.lookup(manifest, "versions")
    if isinstance(versions, dict):
        named["versions"] = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [(name, str(value)) for name, value in named.items() if value not in (None, "", "-")]
    stages = [(name, seconds, f"{seconds:.1f} s") for name, seconds in facts.stage_seconds(manifest)]
    total = facts.number(manifest, "seconds", "total")
    return {
        "lines": [*facts.places(manifest), *lines],
        "chart": bar_chart("Seconds per stage", stages),
        "total": None if total is None else f"{total:.1f}",
    }


_SECTIONS: dict[str, tuple[str, Callable[[Manifest], Section | None]]] = {
    "before_after": ("Rows before and after", _before_after),
    "loss": ("Where detail was lost", _loss),
    "distributions": ("The quasi-identifiers, before and after", _distributions),
    "classes": ("How large the classes are", _classes),
    "models": ("What was asked of the sensitive columns", _models),
    "sensitive": ("The sensitive columns over the classes", _sensitive),
    "risk": ("How easily someone is found", _risk),
    "way": ("How the method got there", _way),
    "checks": ("What was verified on the written table", _checks),
    "figures": ("All numbers, and how they are worked out", _figures),
    "limits": ("What this does not promise", _limits),
    "config": ("The configuration", _config),
    "run": ("The run", _run),
}
