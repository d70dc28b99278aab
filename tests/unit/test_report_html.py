"""The HTML report."""

from html.parser import HTMLParser
from typing import Any

import pytest

from kanon_spark.report.html import render_html

VOID = {"meta", "br", "img", "rect", "hr", "input", "link"}


class Outline(HTMLParser):
    """Which tags, headings and attributes a page has, and whether it is well nested."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.open: list[str] = []
        self.text: dict[str, list[str]] = {}
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href", "onload", "onclick"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data.strip())


def test_the_page_is_well_formed_and_opens_with_the_verdict(manifest: dict[str, Any]) -> None:
    outline = Outline(render_html(manifest))
    assert outline.text["h1"][0].startswith("Verified and published")
    assert outline.text["h1"][0].endswith(
        "shared by at least 10 persons, and every class satisfies what else was asked."
    )
    assert outline.text["h2"][:2] == ["Asked for", "Proved"]
    assert len(outline.text["h2"]) == 2 + 13


def test_models_and_risks_have_sections_of_their_own(manifest: dict[str, Any]) -> None:
    page = render_html(manifest)
    for text in (
        "What was asked of the sensitive columns",
        "l-diversity of diagnosis",
        "3.142",
        "k-map",
        "How easily someone is found",
        "1,000 rows of the source were looked for by age, sex.",
        "k allows 10.0% on the release",
        "Asked: every class has values of an entropy of at least ln 3.",
        "no population table was given",
        "age + zip",
        "1,234.6",
        "mean over the targets of 1 / candidates",
        "least exp(-Σ p ln p)",
    ):
        assert text in page, text
    manifest["risk"]["attack"] = None
    assert "No attack was carried out" in render_html(manifest)
    del manifest["risk"]
    assert "How easily someone is found" not in render_html(manifest)


def test_the_page_needs_no_network_and_runs_no_script(manifest: dict[str, Any]) -> None:
    page = render_html(manifest)
    outline = Outline(page)
    assert all(link.startswith("#") for link in outline.links)
    assert outline.tags.isdisjoint({"script", "link", "img", "iframe"})
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_hostile_values_are_escaped_everywhere(manifest: dict[str, Any]) -> None:
    evil = "\"><script>alert('x')</script>"
    poisoned = poison(manifest, evil)
    page = render_html(poisoned)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    Outline(page)


def poison(value: Any, evil: str) -> Any:
    """The same structure with every text, and every name of a quasi-identifier, replaced."""
    if isinstance(value, dict):
        return {
            (f"{key}{evil}" if key in {"age", "zip", "spark"} else key): poison(item, evil)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [poison(item, evil) for item in value]
    return f"{value}{evil}" if isinstance(value, str) else value


def test_samples_are_left_out_where_the_manifest_has_none(manifest: dict[str, Any]) -> None:
    assert "104**" in render_html(manifest)
    del manifest["samples"]
    page = render_html(manifest)
    assert "104**" not in page
    assert "Rows before and after" not in page


def test_dropped_columns_never_show_their_values(manifest: dict[str, Any]) -> None:
    assert "Emil" not in render_html(manifest)


@pytest.mark.parametrize(
    "manifest_part", [{}, {"metrics": None}, {"outcome": "failed", "error": {"message": "no Java"}}]
)
def test_incomplete_manifests_are_rendered(manifest_part: dict[str, Any]) -> None:
    outline = Outline(render_html(manifest_part))
    assert outline.text["h1"][0].startswith("Nothing was published")


def test_limits_are_always_told() -> None:
    assert "What this does not promise" in render_html({})
