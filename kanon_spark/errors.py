"""Every error a user can meet, in one tree.

Each error knows its stable code (for documentation), its exit code (for schedulers), the place it speaks of and the
fix. Messages never carry raw data values: they name columns, files, lines and counts.
"""


class KanonError(Exception):
    """Base of all errors. `str(error)` is what a user reads: where, what, and the fix."""

    code = "K100"
    exit_code = 1

    def __init__(self, message: str, *, where: str = "", fix: str = "") -> None:
        self.message = message
        self.where = where
        self.fix = fix
        super().__init__(message)

    def __str__(self) -> str:
        head = f"{self.where}: {self.message}" if self.where else self.message
        return f"{head}\n  fix: {self.fix}" if self.fix else head

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (pandas UDF workers), so they must survive pickling whole.
        return (_rebuild, (type(self), self.message, self.where, self.fix))


def _rebuild(kind: type[KanonError], message: str, where: str, fix: str) -> KanonError:
    return kind(message, where=where, fix=fix)


class InternalError(KanonError):
    """A bug of ours: please report it."""

    code = "K101"


class RequestError(KanonError):
    """The request cannot be served as it is written."""

    code = "K200"
    exit_code = 2


class ConfigError(RequestError):
    """The configuration is wrong; the message lists every problem found."""

    code = "K201"


class HierarchyError(RequestError):
    """A hierarchy file or specification is not a usable tree."""

    code = "K202"


class MissingInputError(RequestError):
    """A file, table or column that the request names does not exist."""

    code = "K203"


class TargetError(RequestError):
    """The release cannot be written where the request says."""

    code = "K204"


class PlatformError(RequestError):
    """Java, Spark, a jar or a package that is needed is not there."""

    code = "K205"


class DataError(KanonError):
    """The data does not fit the request."""

    code = "K300"
    exit_code = 3


class CoverageError(DataError):
    """A hierarchy misses values that the table holds."""

    code = "K301"


class EmptyTableError(DataError):
    """There is no row to anonymize."""

    code = "K302"


class TooFewPersonsError(DataError):
    """k is larger than the number of persons (or rows) in the table."""

    code = "K303"


class RoleError(DataError):
    """A column of the table has no role."""

    code = "K304"


class SourceChangedError(DataError):
    """The source changed while it was being read."""

    code = "K305"


class UnsupportedTypeError(DataError):
    """A column's type cannot play the role it was given."""

    code = "K306"


class RepeatedIdError(DataError):
    """An identifier that is to become a pseudonym stands in several rows."""

    code = "K307"


class GuaranteeError(KanonError):
    """A guarantee does not hold on what was written; nothing was published."""

    code = "K401"
    exit_code = 4


class SuppressionError(GuaranteeError):
    """More rows would have to be suppressed than the request allows."""

    code = "K402"


class RetryError(KanonError):
    """Nothing is wrong with the request: try again later."""

    code = "K500"
    exit_code = 5


class LockedError(RetryError):
    """Another run holds the target."""

    code = "K501"


class TimeBudgetError(RetryError):
    """The time budget ran out."""

    code = "K502"
