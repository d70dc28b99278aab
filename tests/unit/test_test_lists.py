"""The committed lists of tests name tests that there are."""

import re
from pathlib import Path

import pytest


@pytest.mark.parametrize(("listing", "below"), [("slow_variants.txt", ""), ("connect_skips.txt", "spark/")])
def test_every_name_is_that_of_a_test(repo: Path, listing: str, below: str) -> None:
    tests = repo / "tests"
    lines = (tests / listing).read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(set(lines))
    for line in lines:
        file, _, test = line.split(": ")[0].partition("::")
        text = (tests / f"{below}{file}").read_text(encoding="utf-8")
        assert not test or re.search(rf"^def {re.escape(test.split('[')[0])}\(", text, re.MULTILINE), line
