"""What `kanon apply` says, and what it refuses before Spark is asked."""

import pytest

from kanon_spark.cli.apply import told
from kanon_spark.cli.main import invoke

MANIFEST = {
    "rows": {"input": 1200, "released": 1100, "held_back": 100, "not_covered": 70, "failing": 30},
    "signatures": {"all": 90, "known": 60, "covered": 20, "not_covered": 10},
    "privacy": {"k": {"asked": 5, "achieved": 6}},
    "classes": 40,
    "metrics": {"gcp": 0.125},
    "sink": {"path": None, "table": "sales.people"},
    "held_back": "/safe/held_back",
    "warnings": ["mind the pair"],
}


def test_the_result_in_a_few_lines() -> None:
    assert told(MANIFEST) == [
        "released  1,100 of 1,200 rows in 40 classes, k = 6 (5 asked)",
        "held back 100 rows: 70 that no class covers, 30 in classes under k or against a model",
        "matched   60 known combinations, 20 new ones, 10 not covered",
        "loss      0.1250",
        "release   sales.people",
        "rows held back (raw): /safe/held_back",
        "note      mind the pair",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["apply", "recoding", "table.csv"],
        ["apply", "recoding", "table.csv", "--to", "out", "--max-held-back", "2"],
        ["apply", "recoding", "table.csv", "--to", "out.csv", "--to-format", "xml"],
        ["recoding", "export", "recoding"],
    ],
)
def test_requests_that_say_too_little_or_too_much(arguments: list[str]) -> None:
    assert invoke(arguments) == 2
