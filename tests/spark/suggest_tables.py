"""Invented tables as `kanon suggest` meets them: a bank's customers, a telecom's calls, a German hospital's cases."""

import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from kanon_spark.demo import words


def _words(text: str) -> list[str]:
    return text.split()


_STATES = _words("CA TX FL NY PA IL OH GA NC MI NJ VA WA AZ MA")
_COUNTRIES = _words("AT BE CH CZ DE DK ES FR GB IT NL PL")
_ICD = _words("I10 E11 J18 I21 I50 C34 C50 N18 K35 K80 M16 M17 S72 S06 F32 F10 G40 O80 Z38 A41")
_TALK = _words("called asked agreed likes wants bought waited wrote about the loan card house letter again soon never")


def bank_customers(rows: int = 600) -> pa.Table:
    """One row per customer of an American bank."""
    luck = random.Random(11)
    zips = {state: [f"{luck.randrange(10_000, 99_999)}" for _ in range(6)] for state in _STATES}

    def customer(number: int) -> dict[str, Any]:
        first, last = (
            luck.choice(words.FIRST_NAMES["female"] + words.FIRST_NAMES["male"]),
            luck.choice(words.LAST_NAMES),
        )
        state = _skewed(luck, _STATES)
        income = 20_000 + 5_000 * min(40, int(luck.expovariate(0.12)))
        return {
            "customer_id": 730_000 + number * 7,
            "full_name": f"{first} {last}",
            "ssn": f"{luck.randrange(100, 899)}-{luck.randrange(10, 99)}-{luck.randrange(1_000, 9_999)}",
            "email": f"{first}.{last}{number}@example.com".lower(),
            "phone": f"({luck.randrange(200, 999)}) 555-{luck.randrange(1_000, 9_999)}",
            "iban": f"DE{luck.randrange(10, 99)}{luck.randrange(10**17, 10**18)}",
            "street": f"{luck.randrange(1, 400)} {luck.choice(words.LAST_NAMES)} Street",
            "zip_code": _skewed(luck, zips[state]),
            "state": state,
            "date_of_birth": date(1940, 1, 1) + timedelta(days=luck.randrange(64 * 365)),
            "gender": luck.choice(["F", "M"]),
            "marital_status": _skewed(luck, ["married", "single", "divorced", "widowed"]),
            "education_level": _skewed(luck, ["high school", "bachelor", "master", "none", "doctorate", "college"]),
            "occupation": luck.choice(words.OCCUPATIONS).name,
            "number_of_children": min(6, int(luck.expovariate(0.8))),
            "customer since": date(2001, 5, 1) + timedelta(days=luck.randrange(22 * 365)),
            "segment": _skewed(luck, ["retail", "affluent", "private"]),
            "annual_income": income,
            "credit_score": 300 + 10 * luck.randrange(56),
            "account.balance": Decimal(luck.randrange(10**7)) / 100,
            "has_loan": luck.random() < 0.3,
            "last_login_ip": f"10.{luck.randrange(256)}.{luck.randrange(256)}.{luck.randrange(256)}",
            "advisor_comment": " ".join(luck.choices(_TALK, k=9)) if luck.random() < 0.7 else None,
        }

    return _table(customer, rows)


def telecom_calls(rows: int = 800) -> pa.Table:
    """Calls of some subscribers, several each."""
    luck = random.Random(12)
    people = [
        {
            "subscriber_id": f"S{number:06d}",
            "msisdn": f"+4366{luck.randrange(10**8, 10**9)}",
            "imei": f"{luck.randrange(10**14, 10**15)}",
            "birthYear": 1940 + luck.randrange(65),
            "gender": _skewed(luck, ["female", "male", "diverse"]),
            "postcode": f"{luck.randrange(1, 10)}{luck.randrange(4)}{luck.randrange(3)}0",
            "tariff": _skewed(luck, ["basic", "family", "flat", "business"]),
        }
        for number in luck.sample(range(10**6), 120)
    ]

    def call(number: int) -> dict[str, Any]:
        person = _skewed(luck, people)
        start = datetime(2024, 3, 1) + timedelta(seconds=luck.randrange(90 * 86_400))
        return {
            "call_id": str(UUID(int=luck.getrandbits(128))),
            **person,
            "called_number": f"+4369{luck.randrange(10**8, 10**9)}",
            "start_time": start,
            "duration_s": int(luck.expovariate(0.005)),
            "cell_id": f"C{luck.randrange(300):04d}",
            "roaming_country": luck.choice(_COUNTRIES) if luck.random() < 0.1 else None,
            "data_volume_mb": luck.random() * 500,
            "dropped": luck.random() < 0.02,
        }

    return _table(call, rows)


def hospital_cases(rows: int = 700) -> pa.Table:
    """Cases of a German hospital: German names of columns, patients that come again, codes that look like others."""
    luck = random.Random(13)
    towns = [(f"{prefix}{end}", f"Stadt {prefix[:2]}") for prefix in words.CITY_PREFIXES[:12] for end in ("07", "14")]
    patients = []
    for number in luck.sample(range(10**5), rows * 3 // 4):
        first, last = (
            luck.choice(words.FIRST_NAMES["female"] + words.FIRST_NAMES["male"]),
            luck.choice(words.LAST_NAMES),
        )
        postal, town = _skewed(luck, towns)
        patients.append(
            {
                "Patientennummer": number,
                "Nachname": last,
                "Vorname": first,
                "Geburtsdatum": date(1932, 1, 1) + timedelta(days=luck.randrange(85 * 365)),
                "Geschlecht": luck.choice(["w", "m"]),
                "PLZ": postal,
                "Wohnort": town,
                "Straße": f"{luck.choice(words.LAST_NAMES)}weg {luck.randrange(1, 90)}",
                "E-Mail": f"{first}{number}@beispiel.de".lower(),
                "Telefon": f"0{luck.randrange(30, 99)}/{luck.randrange(10**6, 10**7)}",
                "Krankenkasse": _skewed(luck, ["AOK", "TK", "Barmer", "DAK", "privat"]),
                "Konfession": _skewed(luck, ["evangelisch", "katholisch", "keine", "muslimisch"]),
            }
        )

    def case(number: int) -> dict[str, Any]:
        day, stay = date(2023, 1, 1) + timedelta(days=luck.randrange(500)), 1 + int(luck.expovariate(0.2))
        return {
            "Fallnummer": f"F{2_000_000 + number}",
            **patients[luck.randrange(len(patients))],
            "Aufnahmedatum": day,
            "Entlassungsdatum": day + timedelta(days=stay),
            "Hauptdiagnose": _skewed(luck, _ICD),
            "Station": luck.choice(["Chirurgie", "Innere", "Geriatrie", "Gyn"]),
            "Zimmer": f"{luck.choice('ABCE')}{luck.randrange(10, 19)}",  # reads like a diagnosis
            "Gewicht (kg)": round(luck.gauss(78, 14), 1),
            "Kosten": Decimal(luck.randrange(10**6)) / 100,
            "Bemerkung": " ".join(luck.choices(_TALK, k=8)),
        }

    return _table(case, rows)


TABLES: dict[str, Callable[[], pa.Table]] = {
    "bank_customers": bank_customers,
    "telecom_calls": telecom_calls,
    "hospital_cases": hospital_cases,
}


def _skewed(luck: random.Random, values: Sequence[Any]) -> Any:
    """The first values more often than the last."""
    return luck.choices(values, weights=[1 / (rank + 1) for rank in range(len(values))])[0]


def _table(row: Callable[[int], dict[str, Any]], rows: int) -> pa.Table:
    return pa.Table.from_pylist([row(number) for number in range(rows)])
