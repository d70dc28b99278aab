"""Shapes of texts. The same expressions are read by Spark (Java) and by Python, and speak of whole texts."""

import re

PHONE = "phone numbers"
# Whoever holds such a text holds the person, or her device.
IDENTIFYING: dict[str, str] = {
    "e-mail addresses": r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$",
    PHONE: r"^(\+[0-9]|\([0-9+]|0[0-9])[0-9 ()/\-]{5,18}$|^[0-9]{3}[-. ][0-9]{3}[-. ][0-9]{4}$",
    "bank accounts (IBAN)": r"^[A-Z]{2}[0-9]{2} ?[A-Z0-9]{4}( ?[A-Z0-9]{1,4}){2,8}$",
    "social security numbers": r"^[0-9]{3}-[0-9]{2}-[0-9]{4}$",
    "card numbers": r"^[0-9]{4}[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{1,7}$",
    "network addresses": r"^([0-9]{1,3}\.){3}[0-9]{1,3}$|^([0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}$"
    r"|^([0-9A-Fa-f]{1,4}:){1,7}:[0-9A-Fa-f:]*$|^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$",
    "universal ids (UUID) or hashes": r"^\{?[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\}?$"
    r"|^[0-9A-Fa-f]{32,128}$",
    "web addresses": r"^https?://\S+$",
    "exact coordinates": r"^-?[0-9]{1,3}\.[0-9]{2,} ?[,; ] ?-?[0-9]{1,3}\.[0-9]{2,}$",
}
# Somewhere in a text: enough to keep it from being published.
EMBEDDED_EMAIL = r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}"

ISO_DATE = "dates (year first)"
OTHER_DATE = "dates (day or month first)"
NUMBER = "numbers"
CODE = "codes"
DIGITS = "texts with digits"
SENTENCE = "texts of several words"
SHAPES: dict[str, str] = {
    ISO_DATE: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?$",
    OTHER_DATE: r"^[0-9]{1,2}[./-][0-9]{1,2}[./-]([0-9]{4}|[0-9]{2})$",
    NUMBER: r"^[-+]?[0-9]+([.,][0-9]+)?$",
    CODE: r"^[A-Za-z0-9][A-Za-z0-9./-]*$",
    DIGITS: r"[0-9]",
    SENTENCE: r"\S\s+\S+\s+\S+\s+\S",
}
ALL: dict[str, str] = {**IDENTIFYING, **SHAPES}


def identifying(text: str) -> str | None:
    """The name of the identifying shape that a text has, None if it has none.

    >>> identifying("ann@example.org"), identifying("+49 30 1234567"), identifying("2024-01-31"), identifying("10117")
    ('e-mail addresses', 'phone numbers', None, None)
    """
    return next((name for name, pattern in IDENTIFYING.items() if re.search(pattern, text)), None)


def holds_email(text: str) -> bool:
    """Whether an e-mail address stands somewhere in a text.

    >>> holds_email("write to ann@example.org!"), holds_email("5 @ 3.50")
    (True, False)
    """
    return re.search(EMBEDDED_EMAIL, text) is not None
