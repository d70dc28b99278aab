"""The package's own logger. Importing kanon_spark never touches the root logger; nothing personal is ever logged."""

import logging

logger = logging.getLogger("kanon_spark")
logger.addHandler(logging.NullHandler())


def enable_logging(level: int = logging.INFO) -> None:
    """Print the package's log lines to standard error (scripts and notebooks; the command line does it itself)."""
    if not any(isinstance(handler, logging.StreamHandler) for handler in logger.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s", "%H:%M:%S"))
        logger.addHandler(handler)
    logger.setLevel(level)
