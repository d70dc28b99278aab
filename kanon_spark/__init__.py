"""kanon_spark: k-anonymous releases of tables of any size, on Apache Spark.

Everything public is importable from here, and importing it pulls in nothing heavy.

>>> import kanon_spark
>>> kanon_spark.__version__
'0.1.0'
"""

from typing import TYPE_CHECKING

from kanon_spark.errors import KanonError
from kanon_spark.logs import enable_logging

if TYPE_CHECKING:
    from kanon_spark.anonymizer import Anonymizer
    from kanon_spark.config.loader import load_config
    from kanon_spark.config.models import Config
    from kanon_spark.engine.applied import Applied
    from kanon_spark.engine.release import Release
    from kanon_spark.explore.suggest import suggest
    from kanon_spark.recoding.saved import Recoding

__version__ = "0.1.0"
__all__ = [
    "Anonymizer",
    "Applied",
    "Config",
    "KanonError",
    "Recoding",
    "Release",
    "__version__",
    "enable_logging",
    "load_config",
    "suggest",
]

_LAZY = {
    "Anonymizer": "kanon_spark.anonymizer",
    "Applied": "kanon_spark.engine.applied",
    "Config": "kanon_spark.config.models",
    "Recoding": "kanon_spark.recoding.saved",
    "Release": "kanon_spark.engine.release",
    "load_config": "kanon_spark.config.loader",
    "suggest": "kanon_spark.explore.suggest",
}


def __getattr__(name: str) -> object:
    """Import the heavy names only when they are asked for."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'kanon_spark' has no attribute '{name}'")
