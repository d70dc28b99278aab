"""Ages in years: brackets that people use, each level within the next.

Five years, but cut at the age of majority and open from 90 on (the age from which on HIPAA's Safe Harbor asks for one
group); then the ten-year brackets of surveys (18-24, 25-34, …); then children, younger and older adults, the retired.
"""

from collections.abc import Iterator, Sequence

OLDEST = 120
_LEVELS: tuple[Sequence[int], ...] = (
    (0, 5, 10, 15, 18, *range(20, 95, 5)),
    (0, 10, 18, *range(25, 95, 10)),
    (0, 18, 45, 65),
)


def by_year() -> Iterator[tuple[str, ...]]:
    """Age, five-year bracket, ten-year bracket, stage of life, root."""
    for age in range(OLDEST + 1):
        yield str(age), *(_bracket(age, starts) for starts in _LEVELS), "*"


def _bracket(age: int, starts: Sequence[int]) -> str:
    index = max(i for i, start in enumerate(starts) if start <= age)
    return f"{starts[index]}+" if index == len(starts) - 1 else f"{starts[index]}-{starts[index + 1] - 1}"
