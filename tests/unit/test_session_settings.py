"""Settings of a session that hold for a while, and what a service forbids."""

import pytest

from kanon_spark.engine.session import merging_sorted, setting

MERGING = "spark.sql.execution.replaceHashWithSortAgg"


class Conf:
    """What a session answers; some keys may be forbidden."""

    def __init__(self, *, forbidden: bool = False, **held: str) -> None:
        self.held = dict(held)
        self.forbidden = forbidden

    def get(self, key: str, default: str | None = None) -> str | None:
        return self.held.get(key, default)

    def set(self, key: str, value: str) -> None:
        if self.forbidden:
            from pyspark.errors import AnalysisException

            raise AnalysisException("CONFIG_NOT_AVAILABLE")
        self.held[key] = value

    def unset(self, key: str) -> None:
        del self.held[key]


class Session:
    """All that is asked of one here."""

    def __init__(self, conf: Conf) -> None:
        self.conf = conf


def test_what_was_there_before_comes_back() -> None:
    conf = Conf(old="1")
    spark = Session(conf)
    with setting(spark, "old", "2"), setting(spark, "new", "3"):  # type: ignore[arg-type]
        assert conf.held == {"old": "2", "new": "3"}
    assert conf.held == {"old": "1"}
    with pytest.raises(ValueError, match="stop"), setting(spark, "new", "3"):  # type: ignore[arg-type]
        raise ValueError("stop")
    assert conf.held == {"old": "1"}


def test_a_service_that_forbids_the_setting_goes_without() -> None:
    allowed, forbidden = Conf(), Conf(forbidden=True)
    with merging_sorted(Session(allowed)):  # type: ignore[arg-type]
        assert allowed.held == {MERGING: "true"}
    assert not allowed.held
    with merging_sorted(Session(forbidden)):  # type: ignore[arg-type]
        assert not forbidden.held


def test_what_goes_wrong_meanwhile_is_told() -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException), merging_sorted(Session(Conf())):  # type: ignore[arg-type]
        raise AnalysisException("the work's own")
