"""The page, the card and the console of a comparison."""

import re
from io import StringIO
from itertools import pairwise

import pytest
from compared_world import a_comparison, renamed
from rich.console import Console
from test_report_html import Outline

from kanon_spark.explore.compare.console import render_comparison
from kanon_spark.explore.compare.page import render_card, render_page
from kanon_spark.explore.compare.result import Limits
from kanon_spark.report.curves import Axis, Curve, Line, Size, curves_chart, linear_axis, log_axis, spread_apart

EVIL = "\"><script>alert('x')</script>\u202e\U0001f600"


def test_the_page_shows_curves_bound_limits_and_choice() -> None:
    page = render_page(a_comparison(Limits(max_gcp=0.1, max_risk=0.2)))
    outline = Outline(page)
    assert outline.text["h2"] == [
        "What protection costs",
        "The same points, seen otherwise",
        "All points",
        "What the figures mean",
        "How it was compared",
    ]
    for text in (
        "Chance to be found, at worst",
        "Discernibility (DM)",
        "Average class (CAVG)",
        "What a decision tree still learns",
        "Seconds of one core",
        "Rows left out: none at any point.",
        "Chosen: <bdi>lattice</bdi> at k = 10.",
        "no target",
        "l_diversity: 2",
    ):
        assert text in page, text
    assert page.count('class="chosen"') > 5, "the chosen point is ringed in every chart, and in the legend"
    assert 'class="limit"' in page
    assert 'class="bound"' in page
    assert "hollow" in page
    assert len(page) < 3_000_000


def test_the_page_needs_no_network_and_runs_no_script() -> None:
    page = render_page(a_comparison())
    outline = Outline(page)
    assert all(link.startswith("#") for link in outline.links)
    assert outline.tags.isdisjoint({"script", "link", "img", "iframe"})
    assert "url(" not in page
    assert "default-src 'none'" in page
    assert 'class="chosen"' not in page


@pytest.mark.parametrize("limits", [Limits(), Limits(max_gcp=0.1), Limits(max_gcp=0.0001)])
def test_hostile_names_are_escaped_everywhere(limits: Limits) -> None:
    comparison = renamed(a_comparison(limits), EVIL)
    page = render_page(comparison)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    Outline(page)
    card = render_card(comparison)
    assert "<script" not in card
    Outline(card)


def test_a_sample_is_said_loudly() -> None:
    from dataclasses import replace

    comparison = a_comparison()
    sampled = replace(comparison, facts=replace(comparison.facts, notes=("All figures are of a sample: …",)))
    assert '<p class="warning">All figures are of a sample' in render_page(sampled)
    assert "All figures are of a sample" in render_card(sampled)
    assert "! All figures are of a sample" in shown(sampled)


def test_nothing_measured_is_a_page_too() -> None:
    comparison = a_comparison()
    none = type(comparison)(
        comparison.cells[2::3], comparison.limits, comparison.facts, comparison.variants[2:], comparison._loaded
    )
    page = render_page(none)
    Outline(page)
    assert "No release can be made at any of these points" in page
    assert "What protection costs" not in page
    assert "no target" in shown(none)


def shown(comparison: object, width: int = 160, encoding: str = "utf-8") -> str:
    out = StringIO()
    render_comparison(comparison, Console(file=out, width=width))  # type: ignore[arg-type]
    return out.getvalue()


def test_the_console_fits_its_width() -> None:
    comparison = a_comparison(Limits(max_gcp=0.1))
    wide, narrow = shown(comparison), shown(comparison, width=60)
    for head in ("loss", "bound", "gap", "at worst", "average", "DM", "CAVG", "classes", "left out", "tree", "CPU s"):
        assert head in wide, head
    table = narrow[: narrow.index("- kactus")]
    assert all(len(line.rstrip()) <= 60 for line in table.splitlines())
    assert "…" not in table
    assert "DM" not in table
    assert "chosen" in wide
    assert "no release" in wide
    assert "- kactus, k = 2, 10, 50: no target" in wide
    evil = shown(renamed(comparison, "\x1b[31m[red]"))
    assert "\x1b" not in evil
    assert "[red]" in evil


def test_axes() -> None:
    assert linear_axis([0.0], str).ticks == (0.0, 1e-12) or linear_axis([0.0], str).high > 0
    assert linear_axis([0.71, 0.84], str, from_zero=False).low == pytest.approx(0.7)
    assert log_axis([3, 30_000], str).ticks[0] == 1
    assert log_axis([2, 8], str).ticks == (1, 2, 5, 10)
    axis = Axis(1, 100, (), str, log=True)
    assert [axis.share(value) for value in (0.1, 1, 10, 100, 1e9)] == [0, 0, 0.5, 1, 1]
    assert Axis(1, 1, (), str).share(1) == 0.5


def test_names_never_stand_on_each_other() -> None:
    found = spread_apart([10, 10, 10, 90, 91, 99], gap=15, low=0, high=100)
    assert all(later - earlier >= 15 - 1e-9 for earlier, later in pairwise(found))
    assert found[0] >= 0
    assert found[-1] <= 100


def test_gaps_break_a_line() -> None:
    curve = Curve("a", 9, (0.1, 0.2, None, 0.3, 0.4), ("",) * 5, (True, False, True, True, True), chosen=1)
    lines = [Line("nothing", (None,) * 5, "bound"), Line("limit", (0.2,) * 5, "limit")]
    chart = curves_chart(
        "t", list("12345"), [curve], linear_axis([0.4], str), across="k", lines=lines, size=Size(600, 300, names=100)
    )
    assert len(re.findall('class="run"', chart)) == 2
    assert chart.count('class="mark') == 4
    assert chart.count("hollow") == 1
    assert "c1 dashed" in chart, "a ninth curve has the second colour once more, dashed"
    assert "reach" not in chart
