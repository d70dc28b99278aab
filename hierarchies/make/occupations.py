"""Occupations: the codes of ISCO-08, the International Standard Classification of Occupations of 2008.

Its four levels are the first one to four digits of a code, so that the structure is a list of which codes there are.
Only codes are written down here, no titles or definitions of the classification.
"""

from collections.abc import Iterator

# Sub-major group -> third digit -> fourth digits of its unit groups.
_UNIT_GROUPS: dict[str, str] = {
    "01": "1:0",
    "02": "1:0",
    "03": "1:0",
    "11": "1:1234 2:0",
    "12": "1:1239 2:123",
    "13": "1:12 2:1234 3:0 4:1234569",
    "14": "1:12 2:0 3:19",
    "21": "1:1234 2:0 3:123 4:1234569 5:123 6:123456",
    "22": "1:12 2:12 3:0 4:0 5:0 6:12345679",
    "23": "1:0 2:0 3:0 4:12 5:1234569",
    "24": "1:123 2:1234 3:1234",
    "25": "1:12349 2:1239",
    "26": "1:129 2:12 3:123456 4:123 5:1234569",
    "31": "1:123456789 2:123 3:123459 4:123 5:12345",
    "32": "1:1234 2:12 3:0 4:0 5:123456789",
    "33": "1:12345 2:1234 3:12349 4:1234 5:123459",
    "34": "1:123 2:123 3:12345",
    "35": "1:1234 2:12",
    "41": "1:0 2:0 3:12",
    "42": "1:1234 2:12345679",
    "43": "1:123 2:123",
    "44": "1:1234569",
    "51": "1:123 2:0 3:12 4:12 5:123 6:123459",
    "52": "1:12 2:123 3:0 4:1234569",
    "53": "1:12 2:129",
    "54": "1:12349",
    "61": "1:1234 2:1239 3:0",
    "62": "1:0 2:1234",
    "63": "1:0 2:0 3:0 4:0",
    "71": "1:123459 2:1234567 3:123",
    "72": "1:12345 2:1234 3:1234",
    "73": "1:123456789 2:123",
    "74": "1:123 2:12",
    "75": "1:123456 2:123 3:123456 4:12349",
    "81": "1:1234 2:12 3:12 4:123 5:12345679 6:0 7:12 8:1239",
    "82": "1:129",
    "83": "1:12 2:12 3:12 4:1234 5:0",
    "91": "1:12 2:1239",
    "92": "1:123456",
    "93": "1:123 2:19 3:1234",
    "94": "1:12",
    "95": "1:0 2:0",
    "96": "1:123 2:12349",
}


def by_unit_group() -> Iterator[tuple[str, ...]]:
    """Unit group (four digits), minor group, sub-major group, major group, root."""
    for sub_major, minors in _UNIT_GROUPS.items():
        for minor in minors.split():
            third, fourths = minor.split(":")
            for fourth in fourths:
                code = f"{sub_major}{third}{fourth}"
                yield code, code[:3], code[:2], code[:1], "*"
