"""The HTML report: one file that needs no network, from the manifest alone.

Each section is a small template in `templates/` and a function here that gathers what it shows; a section with
nothing to show is left out. Everything is escaped, and the page forbids scripts altogether.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from kanon_spark.report import facts, risk_facts
from kanon_spark.report.charts import bar_chart
from kanon_spark.report.facts import Manifest

if TYPE_CHECKING:
    from jinja2 import Environment

Section = dict[str, Any]


def render_html(manifest: Manifest) -> str:
    """The report as one self-contained page.

    >>> page = render_html({"name": "<script>", "privacy": {"k": {"asked": 5, "achieved": 5}}})
    >>> "<script" in page
    False
    """
    sections = [
        {"template": f"{name}.html.j2", "title": title, **content}
        for name, (title, gather) in _SECTIONS.items()
        if (content := gather(manifest)) is not None
    ]
    page = _environment().get_template("report.html.j2")
    return page.render(
        name=str(manifest.get("name") or "release"),
        run_id=str(manifest.get("run_id") or ""),
        finished=str(manifest.get("finished") or ""),
        verdict=facts.verdict(manifest),
        headline=facts.figures(manifest)[:4],
        warnings=facts.warnings(manifest),
        sections=sections,
    )


@cache
def _environment() -> "Environment":
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
    found = facts.figures(manifest)
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
    chart = bar_chart("Loss per quasi-identifier", bars, whole=1.0)
    return {"chart": chart, "worst": worst[0], "most": facts.percent(worst[1])}


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
    "figures": ("The numbers, and what they mean", _figures),
    "models": ("What was asked of the sensitive columns", _models),
    "loss": ("Where detail was lost", _loss),
    "classes": ("How large the classes are", _classes),
    "risk": ("How easily someone is found", _risk),
    "checks": ("What was verified on the written table", _checks),
    "limits": ("What this does not promise", _limits),
    "run": ("The run", _run),
}
