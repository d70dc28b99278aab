"""Words for messages: did-you-mean, and lists that fit a line."""

from collections.abc import Iterable
from difflib import get_close_matches


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that the given one was probably meant to be.

    >>> closest("quasi_identifier", ["identifiers", "quasi_identifiers"])
    'quasi_identifiers'
    """
    by_fold = {item.casefold(): item for item in known}
    matches = get_close_matches(word.casefold(), by_fold, n=1, cutoff=0.6)
    return by_fold[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Ready to be put behind a sentence: `; did you mean 'x'?`, or nothing."""
    match = closest(word, known)
    return f"; did you mean '{match}'?" if match else ""
