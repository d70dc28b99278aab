"""US states, from the Census Bureau's regions and divisions.

The grouping is the Bureau's own ("Census Regions and Divisions of the United States"). Puerto Rico and the four other
island territories belong to none of its regions; here they form one of their own, so that they stand under `*` alone.
"""

from collections.abc import Iterator

TERRITORIES = "Puerto Rico and Island Areas"

# Region -> division -> code -> name.
_REGIONS: dict[str, dict[str, dict[str, str]]] = {
    "Northeast": {
        "New England": {
            "CT": "Connecticut",
            "ME": "Maine",
            "MA": "Massachusetts",
            "NH": "New Hampshire",
            "RI": "Rhode Island",
            "VT": "Vermont",
        },
        "Middle Atlantic": {"NJ": "New Jersey", "NY": "New York", "PA": "Pennsylvania"},
    },
    "Midwest": {
        "East North Central": {
            "IL": "Illinois",
            "IN": "Indiana",
            "MI": "Michigan",
            "OH": "Ohio",
            "WI": "Wisconsin",
        },
        "West North Central": {
            "IA": "Iowa",
            "KS": "Kansas",
            "MN": "Minnesota",
            "MO": "Missouri",
            "NE": "Nebraska",
            "ND": "North Dakota",
            "SD": "South Dakota",
        },
    },
    "South": {
        "South Atlantic": {
            "DE": "Delaware",
            "DC": "District of Columbia",
            "FL": "Florida",
            "GA": "Georgia",
            "MD": "Maryland",
            "NC": "North Carolina",
            "SC": "South Carolina",
            "VA": "Virginia",
            "WV": "West Virginia",
        },
        "East South Central": {"AL": "Alabama", "KY": "Kentucky", "MS": "Mississippi", "TN": "Tennessee"},
        "West South Central": {"AR": "Arkansas", "LA": "Louisiana", "OK": "Oklahoma", "TX": "Texas"},
    },
    "West": {
        "Mountain": {
            "AZ": "Arizona",
            "CO": "Colorado",
            "ID": "Idaho",
            "MT": "Montana",
            "NV": "Nevada",
            "NM": "New Mexico",
            "UT": "Utah",
            "WY": "Wyoming",
        },
        "Pacific": {"AK": "Alaska", "CA": "California", "HI": "Hawaii", "OR": "Oregon", "WA": "Washington"},
    },
    TERRITORIES: {
        TERRITORIES: {
            "AS": "American Samoa",
            "GU": "Guam",
            "MP": "Northern Mariana Islands",
            "PR": "Puerto Rico",
            "VI": "U.S. Virgin Islands",
        },
    },
}


def by_code() -> Iterator[tuple[str, ...]]:
    """Two-letter code, division, region, root."""
    for code, _, division, region in _states():
        yield code, division, region, "*"


def by_name() -> Iterator[tuple[str, ...]]:
    """Name, division, region, root."""
    for _, name, division, region in _states():
        yield name, division, region, "*"


def _states() -> Iterator[tuple[str, str, str, str]]:
    for region, divisions in _REGIONS.items():
        for division, states in divisions.items():
            for code, name in states.items():
                yield code, name, division, region
