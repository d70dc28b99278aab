"""The external edition: what may travel with a release."""

import copy
from typing import Any

from kanon_spark.report.external import external
from kanon_spark.report.html import render_html


def strings_of(node: Any) -> list[str]:
    """Every text in a manifest."""
    if isinstance(node, dict):
        return [text for key, value in node.items() for text in [str(key), *strings_of(value)]]
    if isinstance(node, list | tuple):
        return [text for value in node for text in strings_of(value)]
    return [node] if isinstance(node, str) else []


def test_only_what_is_listed_is_shown(manifest: dict[str, Any]) -> None:
    """Whatever a later version adds to a manifest stays inside until somebody lists it."""
    planted = copy.deepcopy(manifest)
    for place in (
        planted,
        planted["rows"],
        planted["columns"],
        planted["metrics"],
        planted["risk"],
        planted["details"],
    ):
        place["planted"] = "canary"
    for part in ("before", "after"):
        planted["risk"][part]["sizes"]["planted"] = "canary"
        planted["risk"]["attack"][part]["planted"] = "canary"
    planted["privacy"]["l_diversity(diagnosis)"]["planted"] = "canary"
    planted["details"]["quasi_identifiers"]["columns"][0]["planted"] = "canary"
    planted["checks"][0]["detail"] = "canary"
    assert "canary" not in strings_of(external(planted))
    assert "canary" not in render_html(planted, edition="external")


def test_nothing_of_the_source_but_its_size(manifest: dict[str, Any]) -> None:
    page = render_html(manifest, edition="external")
    inside = render_html(manifest)
    for text in (
        "Rows before and after",
        "30 &lt;i&gt;",
        "/data/admissions.parquet",
        "/out/release",
        "The configuration",
    ):
        assert text not in page, text
    assert "Rows before and after" in inside and "The configuration" in inside
    assert "External edition" in page and "Internal document" in inside
    assert "50,000" in page
    assert "[20, 39]" in page
    assert "ranges and sets of several values" in page and "{20, rare}" not in page and "{20, rare}" in inside
    assert "42.0%" not in page  # how many were unique before


def test_values_of_fewer_than_k_persons_and_counts_under_k_are_not_shown(manifest: dict[str, Any]) -> None:
    manifest["rows"] |= {"suppressed": 7, "released": 49_993}
    manifest["persons_suppressed"] = 6
    manifest["metrics"]["per_qi"]["age"]["levels"] = {"0": 3, "1": 49_987}
    shown = external(manifest)
    assert [value["label"] for value in shown["details"]["sensitive"]["columns"][0]["values"]] == ["flu"]
    assert repr(shown["rows"]["suppressed"]) == repr(shown["persons_suppressed"]) == "<10"
    # Everybody can count the release: what it was made of would tell the rest.
    assert "input" not in shown["rows"] and "persons" not in shown and shown["metrics"]["dm"] is None
    assert shown["details"]["quasi_identifiers"]["closings"][-1]["share"] == 1.0
    assert shown["metrics"]["per_qi"]["age"]["levels"] is None
    page = render_html(manifest, edition="external")
    assert not any(text in page for text in ("50,000", "42,654", "820,000", "0.9998"))
    assert "&lt;10" in page and "rare &lt;b" not in page and "0.014%" not in page
    assert "rare &lt;b&gt;" in render_html(manifest)


def test_named_sensitive_values_of_a_request_are_not_told(manifest: dict[str, Any]) -> None:
    manifest["privacy"]["alpha(diagnosis)"] = {
        "model": "alpha",
        "column": "diagnosis",
        "asked": {"alpha": 0.2, "values": ["secret illness"]},
        "words": "at most a share of 0.2 of secret illness",
        "achieved": 0.1,
        "passed": True,
    }
    assert "secret illness" in render_html(manifest)
    assert "secret illness" not in render_html(manifest, edition="external")


def test_a_manifest_that_is_cut_short_still_makes_a_page() -> None:
    for manifest in (
        {},
        {"privacy": {"k": {"asked": 5, "achieved": 5}}},
        {"rows": None, "details": None, "risk": None},
    ):
        assert "</html>" in render_html(manifest, edition="external")
