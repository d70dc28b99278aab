"""What column names mean, in several languages and spellings."""

import pytest

from kanon_spark.explore.suggest.words import read_name, tokens


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("patient_birth-date", ("patient", "birth", "date")),
        ("HTTPServerID", ("http", "server", "id")),
        ("Größe", ("grosse",)),
        ("a.b c", ("a", "b", "c")),
        ("年龄", ("年龄",)),
        ("", ()),
        ("_", ()),
    ],
)
def test_tokens(name: str, parts: tuple[str, ...]) -> None:
    assert tokens(name) == parts


@pytest.mark.parametrize(
    ("meaning", "names"),
    [
        (
            "identifier",
            "name Name full_name lastName Nachname vorname prénom Apellidos cognome email E-Mail emailAddress phone "
            "mobile_number Telefonnummer msisdn ssn passport_no IBAN Kontonummer ip ip_address imei user_name username "
            "Straße street address Anschrift birth_name called_number last_login_ip customer_name home_address",
        ),
        (
            "quasi",
            "age Alter âge edad age_group birth_date dob Geburtsdatum date_of_birth birthYear sex gender Geschlecht "
            "sexe zip zip_code ZIPCode PLZ Postleitzahl code_postal city city_name Wohnort town state Bundesland "
            "country native-country Nationalität Staatsangehörigkeit occupation job_title Beruf workclass "
            "education-num marital_status Familienstand number_of_children household_size race ethnicity language "
            "latitude height ward hospital_name Krankenkasse year customer_zip_code employer address_city",
        ),
        (
            "sensitive",
            "diagnosis Hauptdiagnose icd10 disease hiv_status treatment medication income annual_income salary "
            "Gehalt Einkommen credit_score religion Konfession political_party sexual_orientation criminal_record "
            "diagnosis_name loan_amount",
        ),
    ],
)
def test_names_by_meaning(meaning: str, names: str) -> None:
    for name in names.split():
        senses = read_name(name).senses
        assert senses, name
        assert senses[0].meaning == meaning, (name, senses)  # identifiers come first, then quasi-identifiers


@pytest.mark.parametrize(
    "names",
    [
        "product_name file_name fnlwgt capital-gain hours-per-week segment tariff cost amount page_count agent stage "
        "message average_speed percentage usage sport report transport cellular_data sekunden result",
    ],
)
def test_names_that_say_nothing(names: str) -> None:
    for name in names.split():
        found = read_name(name)
        assert (found.senses, found.person_id) == ((), False), name


@pytest.mark.parametrize(
    "names",
    [
        "patient_id PatientID patientid customer_no CustomerNumber id_cliente Kundennummer kundennr Versichertennummer "
        "subscriber_id user_id member_key Patientennummer employee_number citizen_id patient customer patient_code",
    ],
)
def test_ids_of_persons(names: str) -> None:
    for name in names.split():
        assert read_name(name).person_id, name


@pytest.mark.parametrize(
    "names",
    [
        "visit_id id store_no customer_age citizenship number_of_patients customer_zip_code personal_income "
        "customer_segment membership",
    ],
)
def test_not_ids_of_persons(names: str) -> None:
    for name in names.split():
        assert not read_name(name).person_id, name


@pytest.mark.parametrize(("name", "like"), [("id", True), ("visit_nr", True), ("no_of_rooms", False), ("idea", False)])
def test_numbers_and_keys(name: str, like: bool) -> None:
    assert read_name(name).id_like is like
