"""Verdicts and class facts: what the driver makes of the counts."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kanon_spark.errors import GuaranteeError, SuppressionError
from kanon_spark.signatures.layout import Layout
from kanon_spark.verify.facts import Check, ClassFacts, Verdict
from kanon_spark.verify.pairs import distinct_pairs

NO_FACTS = ClassFacts.of({}, k=5)


def verdict(*checks: Check) -> Verdict:
    return Verdict(checks, NO_FACTS, rows=0, content_hash="")


@given(st.lists(st.integers(1, 300), max_size=40), st.integers(1, 20))
def test_class_facts_agree_with_the_sizes_themselves(sizes: list[int], k: int) -> None:
    facts = ClassFacts.of(Counter(sizes), k=k)
    assert facts.classes == len(sizes)
    assert facts.smallest == min(sizes, default=0) == facts.achieved
    assert facts.largest == max(sizes, default=0)
    assert facts.sum_squares == sum(size**2 for size in sizes)
    assert sum(facts.histogram.values()) == len(sizes)
    assert facts.histogram.get("<k", 0) == sum(size < k for size in sizes)
    assert facts.histogram.get("2k..4k-1", 0) == sum(2 * k <= size < 4 * k for size in sizes)


def test_a_verdict_passes_only_if_something_was_checked_and_all_of_it_held() -> None:
    assert verdict(Check("k", True, "")).passed
    assert not verdict().passed
    assert not verdict(Check("k", True, ""), Check("truth", False, "")).passed
    verdict(Check("k", True, "")).require()


def test_every_failed_check_is_named() -> None:
    failed = verdict(Check("k", False, "3 groups"), Check("rows", True, "fine"), Check("truth", False, "age (2)"))
    with pytest.raises(GuaranteeError) as error:
        failed.require()
    assert "k: 3 groups" in str(error.value)
    assert "truth: age (2)" in str(error.value)
    assert "fine" not in str(error.value)
    assert not isinstance(error.value, SuppressionError)
    assert error.value.exit_code == 4


def test_too_much_suppression_has_an_error_of_its_own() -> None:
    with pytest.raises(SuppressionError):
        verdict(Check("k", True, ""), Check("suppression", False, "9 rows")).require()
    with pytest.raises(GuaranteeError) as error:
        verdict(Check("k", False, ""), Check("suppression", False, "9 rows")).require()
    assert not isinstance(error.value, SuppressionError)


def test_nothing_checked_is_refused() -> None:
    with pytest.raises(GuaranteeError, match="nothing was checked"):
        verdict().require()


@pytest.mark.parametrize("sizes", [[(5, 9), (40, 60), (3, 1)], [(5_000_000, 6_000_000), (4, 5), (2**40, 3)]])
def test_distinct_pairs_are_those_of_the_codes(sizes: list[tuple[int, int]]) -> None:
    layout, node_layout = Layout.of([leaves for leaves, _ in sizes]), Layout.of([nodes for _, nodes in sizes])
    random = np.random.default_rng(7)
    leaves = np.column_stack([random.integers(0, min(leaf, 50), 300) for leaf, _ in sizes])
    nodes = np.column_stack([random.integers(max(0, node - 20), node, 300) for _, node in sizes])
    words = np.hstack([layout.pack(leaves), node_layout.pack(nodes)])
    names = [*layout.names("key"), *node_layout.names("out")]
    table = pa.table({name: words[:, place] for place, name in enumerate(names)})
    found = pa.Table.from_batches(
        distinct_pairs(table.to_batches(max_chunksize=70), layout=layout, node_layout=node_layout, indexes=(0, 1))
    )
    for index in (0, 1):
        expected = set(zip(leaves[:, index].tolist(), nodes[:, index].tolist(), strict=True))
        got = [(row["leaf"], row["node"]) for row in found.to_pylist() if row["qi"] == index]
        assert len(got) == len(expected)
        assert set(got) == expected
