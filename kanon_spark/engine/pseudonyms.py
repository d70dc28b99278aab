"""What a run does about identifiers that become pseudonyms: refuse those that repeat, and tell the verifier of them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kanon_spark.config.models import Config
from kanon_spark.config.pseudonyms import PseudonymSpec, repeated_text, stable_warning
from kanon_spark.errors import RepeatedIdError
from kanon_spark.signatures.columns import quoted
from kanon_spark.signatures.encoding import CONTENT_HASH, ROW_HASH
from kanon_spark.signatures.ids import IdFacts, id_bytes, look_at_ids
from kanon_spark.verify.pseudonyms import Pseudonym, PseudonymFacts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kanon_spark.signatures.encoding import Encoding


def pseudonym_specs(config: Config) -> dict[str, PseudonymSpec]:
    """The identifiers that are published as pseudonyms."""
    named = config.columns.identifiers.items()
    return {name: spec.pseudonym for name, spec in named if spec.pseudonym is not None}


def checked_ids(source: "DataFrame", config: Config) -> dict[str, IdFacts]:
    """What is known of the ids that become pseudonyms.

    All rows of the source count, also those that will be suppressed: whether a run is refused must not hang on which
    rows a method leaves out, and `check` must be able to tell beforehand.

    Raises:
        RepeatedIdError: An id stands in several rows.
    """
    found = look_at_ids(source, list(pseudonym_specs(config)))
    for name, facts in found.items():
        if facts.repeated:
            message, fix = repeated_text(name, facts.repeated)
            raise RepeatedIdError(message, where=f"columns.identifiers.{name}.pseudonym", fix=fix)
    return found


def pseudonym_facts(
    source: "DataFrame", encoding: "Encoding", config: Config, *, kept: Sequence[str], run_id: str
) -> PseudonymFacts | None:
    """What the verifier needs to check the pseudonyms of a run's release; None where there are none."""
    from pyspark.sql import functions as F

    specs = pseudonym_specs(config)
    if not specs:
        return None
    rows = encoding.with_identity(source, kept)
    ids = [id_bytes(rows, name).alias(f"id{index}") for index, name in enumerate(specs)]
    return PseudonymFacts(
        columns=tuple(Pseudonym(name, spec.salt(run_id), spec.key_bytes) for name, spec in specs.items()),
        rows=rows.select(F.col(quoted(ROW_HASH)).alias("h"), F.col(quoted(CONTENT_HASH)).alias("g"), *ids),
    )


def pseudonym_columns(config: Config) -> dict[str, Mapping[str, object]]:
    """What the manifest tells of each pseudonym: everything but its key."""
    return {name: {"stable": spec.stable} for name, spec in pseudonym_specs(config).items()}


def pseudonym_warnings(config: Config) -> list[str]:
    """What the owner of a release with stable pseudonyms must know."""
    return [stable_warning(name) for name, spec in pseudonym_specs(config).items() if spec.stable]
