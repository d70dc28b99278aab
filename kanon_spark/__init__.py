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
    from kanon_spark.engine.release import Release

__version__ = "0.1.0"
__all__ = ["Anonymizer", "Config", "KanonError", "Release", "__version__", "enable_logging", "load_config"]

_LAZY = {
    "Anonymizer": "kanon_spark.anonymizer",
    "Config": "kanon_spark.config.models",
    "Release": "kanon_spark.engine.release",
    "load_config": "kanon_spark.config.loader",
}


def __getattr__(name: str) -> object:
    """Import the heavy names only when they are asked for."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'kanon_spark' has no attribute '{name}'")
