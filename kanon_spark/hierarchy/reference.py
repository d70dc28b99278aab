"""Reference taxonomies: hierarchies of well-known classifications that any configuration can name.

`{reference: us_states_code}` in a configuration is one of them. Here they are by themselves, for those who look for the
one that fits a column.
"""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from kanon_spark.config.reference_files import REFERENCES, ReferenceEntry, reference_file

_FIVE_DIGITS = re.compile(r"[0-9]{5}")


@dataclass(frozen=True)
class Reference:
    """One reference taxonomy.

    Attributes:
        name: Its name in configurations.
        title: What its values are, in a few words.
        kind: What columns it is for: text, or numbers.
        words: Words that the names of such columns are made of.
        spec: The hierarchy as it is written in a configuration.
    """

    name: str
    title: str
    kind: Literal["text", "number"]
    words: tuple[str, ...]
    spec: dict[str, object] = field(hash=False)
    _entry: ReferenceEntry = field(repr=False, compare=False)

    @cached_property
    def values(self) -> frozenset[str]:
        """The values it names, read from its file when first asked for; none where any text of a form is one."""
        if self._entry.keep is not None:
            return frozenset()
        with reference_file(self.name).open(encoding="utf-8", newline="") as file:
            return frozenset(row[0] for row in csv.reader(file, delimiter=";"))

    def knows(self, value: str) -> bool:
        """Whether a value, as Spark prints it, has a place in the taxonomy.

        >>> reference("us_states_code").knows("CA"), reference("us_zip").knows("1040")
        (True, False)
        """
        if self._entry.keep is not None:
            return _FIVE_DIGITS.fullmatch(value) is not None
        return value in self.values or (self._entry.stem is not None and value[: self._entry.stem] in self.values)

    def coverage(self, values: Iterable[str]) -> float:
        """The share of the distinct values that it knows; 0 where there are none.

        >>> reference("us_states_code").coverage(["CA", "NY", "CA", "XX", "YY"])
        0.5
        """
        distinct = set(values)
        return sum(map(self.knows, distinct)) / len(distinct) if distinct else 0.0


def references() -> tuple[Reference, ...]:
    """All reference taxonomies, by name.

    >>> [each.name for each in references() if "zip" in each.words]
    ['us_zip']
    """
    return tuple(_BY_NAME.values())


def reference(name: str) -> Reference:
    """The reference taxonomy of a name.

    Raises:
        KeyError: There is none.
    """
    return _BY_NAME[name]


def _of(entry: ReferenceEntry) -> Reference:
    return Reference(entry.name, entry.title, entry.kind, entry.words, {"reference": entry.name}, entry)


_BY_NAME = {name: _of(REFERENCES[name]) for name in sorted(REFERENCES)}
