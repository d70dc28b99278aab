"""In which form a quasi-identifier is published, as `output` asks.

Plain words about plain words: it knows the configuration and the kind of a column, no tree and no data, so that the
pre-flight, the run and the verifier can all ask the same question.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kanon_spark.config.models import Config, PrefixSpec, QiSpec

if TYPE_CHECKING:
    from kanon_spark.hierarchy.tree import Kind

_NUMERIC = frozenset({"integer", "real"})
_ORDERED = _NUMERIC | {"date", "timestamp"}
# The columns that `output.numeric` adds behind a numeric QI, by the end of their names.
_NUMBERS: dict[str, tuple[str, ...]] = {"label": (), "bounds": ("lo", "hi"), "mean": ("mean",)}


SUPPRESSED = "*"
_SUPPRESSED_BY = {"kactus": "?"}  # methods whose papers write a suppressed cell in a way of their own


@dataclass(frozen=True)
class Form:
    """How one quasi-identifier is published, beyond its label.

    Attributes:
        grid: Its ranges end on round steps (`output.ranges: grid`).
        members: It publishes arrays of values instead of set labels (`output.sets: array`).
        numbers: The number columns behind it: `lo` and `hi`, or `mean` (`output.numeric`).
        mean: Its ranges are replaced by the mean of the class's rows (`numeric: mean` of the method kactus).
        suppressed: What a suppressed cell reads.
    """

    grid: bool = False
    members: bool = False
    numbers: tuple[str, ...] = ()
    mean: bool = False
    suppressed: str = SUPPRESSED

    def added(self, name: str) -> list[str]:
        """Names of the columns that stand behind the QI's own.

        >>> Form(numbers=("lo", "hi")).added("age")
        ['age_lo', 'age_hi']
        """
        return [f"{name}_{part}" for part in self.numbers]


AS_LABELS = Form()  # what is published where nothing else is asked for


def form_of(spec: QiSpec, kind: "Kind", config: Config) -> Form:
    """The form of a quasi-identifier of this kind.

    Numbers under a prefix hierarchy are codes, of which neither bounds nor a mean say anything. Dates have no mean:
    their ranges stay.
    """
    own, output = spec.hierarchy is None, config.output
    numeric = kind in _NUMERIC and not isinstance(spec.hierarchy, PrefixSpec)
    mean = own and numeric and config.resolved_method == "kactus" and config.method.numeric == "mean"
    return Form(
        grid=own and kind in _ORDERED and output.ranges == "grid" and not mean,
        members=own and kind not in _ORDERED and output.sets == "array",
        numbers=_NUMBERS[output.numeric] if numeric else (),
        mean=mean,
        suppressed=_SUPPRESSED_BY.get(config.resolved_method, SUPPRESSED),
    )


def forms_of(config: Config, kinds: "Mapping[str, Kind]") -> dict[str, Form]:
    """The form of each quasi-identifier whose kind is known."""
    specs = config.columns.quasi_identifiers
    return {name: form_of(spec, kinds[name], config) for name, spec in specs.items() if name in kinds}
