"""What column names mean: words for identifiers, quasi-identifiers and sensitive facts in several languages.

A name is cut into tokens (`patientBirthDate`, `patient_birth-date` → patient, birth, date), accents and capitals aside.
A *word* must be a token, or several tokens together (`first_name`, `firstname`); a *stem* may stand anywhere in a
token, as compounds have it (`geburt` in `geburtsdatum`).
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

Meaning = Literal["identifier", "quasi", "sensitive"]
_TOKEN = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_LONGEST_PHRASE = 4


@dataclass(frozen=True)
class Sense:
    """One thing that a column may be about.

    Attributes:
        title: How reasons call it.
        meaning: The role that it suggests.
        words: Tokens, or tokens written together, that must occur whole.
        stems: Parts of tokens.
        weak: Gives way to any other sense: a `name` may be that of a city.
    """

    title: str
    meaning: Meaning
    words: frozenset[str]
    stems: tuple[str, ...] = ()
    weak: bool = False


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _sense(title: str, meaning: Meaning, words: str, stems: str = "", *, weak: bool = False) -> Sense:
    return Sense(title, meaning, _words(words), tuple(stems.split()), weak)


IDENTIFIERS = (
    _sense(
        "a person's name",
        "identifier",
        "surname forename firstname lastname fullname middlename maidenname birthname givenname familyname nickname "
        "initials vorname nachname familienname geburtsname prenom apellido apellidos cognome sobrenome voornaam "
        "achternaam",
        "surname firstname lastname fullname vorname nachname familienname",
    ),
    _sense("an e-mail address", "identifier", "email emails mail emailaddress mailaddress courriel correo", "email"),
    _sense(
        "a phone number",
        "identifier",
        "phone telephone tel mobile handy fax msisdn phonenumber mobilenumber cellphone calling called callee caller "
        "anumber bnumber festnetz",
        "telefon telefono rufnummer mobilnummer phonenumber",
    ),
    _sense(
        "an official number of a person",
        "identifier",
        "ssn socialsecurity nationalid passport nif dni nie cpf curp nino nhs mrn insee ahv svnr tin taxid taxnumber "
        "steuerid driverlicense driverslicense licenseplate numberplate vin bsn",
        "ausweis reisepass steuernummer sozialversicherung versichertennummer versichertennr kennzeichen passport "
        "fuehrerschein fuhrerschein fahrgestell",
    ),
    _sense(
        "an account or a card",
        "identifier",
        "iban bic accountnumber accountno accountnr cardnumber cardno ccnumber creditcardnumber konto compte cuenta",
        "kontonummer kontonr kartennummer",
    ),
    _sense(
        "a device or a login",
        "identifier",
        "ip ipaddress ipaddr ipv4 ipv6 mac macaddress imei imsi iccid deviceid cookie cookieid sessionid username "
        "userid login uuid guid hostname url website serialnumber",
        "username benutzername",
    ),
    _sense(
        "a street address",
        "identifier",
        "street streetname housenumber housenr hausnummer hausnr strasse anschrift indirizzo direccion endereco calle "
        "rue straat",
        "strasse anschrift",
    ),
    _sense("a picture or a signature", "identifier", "photo picture image fingerprint signature portrait", ""),
    _sense("a name", "identifier", "name names nom nombre nombres nome naam", "", weak=True),
    _sense("an address", "identifier", "address addr adresse adress addresse", "adresse", weak=True),
    _sense("an account", "identifier", "account accounts user", "", weak=True),
)
POSTAL_CODE = _sense(
    "a postal code",
    "quasi",
    "zip zipcode zip5 zip4 plz postal postcode postalcode postleitzahl codepostal codigopostal cp npa",
    "zipcode postcode postleitzahl postalcode",
)
QUASI_IDENTIFIERS = (
    _sense("an age", "quasi", "age ages alter edad eta idade leeftijd agegroup altersgruppe lebensalter", "altersgr"),
    _sense(
        "a birth",
        "quasi",
        "dob born birth birthday gebdat gebdatum geb yob nascita nato",
        "birth geburt naissance nacimiento nascimento geboort",
    ),
    _sense("a sex", "quasi", "sex gender sexe sexo sesso genre genero genere", "geschlecht geslacht gender"),
    POSTAL_CODE,
    _sense(
        "a place",
        "quasi",
        "city town village municipality ort stadt gemeinde ville commune ciudad citta comune plaats place location "
        "standort neighborhood neighbourhood suburb lat lon lng latitude longitude geo gps geohash cell cellid tower "
        "antenna site tract",
        "wohnort geburtsort municipal residenc wohnsitz latitud longitud breitengrad laengengrad langengrad",
    ),
    _sense(
        "a region",
        "quasi",
        "state states province county district region regions canton kanton bezirk kreis landkreis departement "
        "provincia regione estado",
        "bundesland province landkreis",
    ),
    _sense(
        "a country or nationality",
        "quasi",
        "country countries nation nationality land staat pays pais paese citizenship herkunftsland",
        "countr nationalit nacionalidad nazionalit staatsang staatsburg herkunft",
    ),
    _sense(
        "an occupation",
        "quasi",
        "occupation job jobtitle profession employer employment workclass work position industry branche beruf metier "
        "emploi ocupacion oficio lavoro mestiere beroep rank isco",
        "occupation profession beruf arbeitgeber",
    ),
    _sense(
        "an education",
        "quasi",
        "education degree school university college schooling schule abschluss diplome titulo istruzione opleiding "
        "bildung studium major",
        "educat bildung schulabschl hochschul universit",
    ),
    _sense(
        "a family status",
        "quasi",
        "marital maritalstatus married civilstatus spouse familienstand etatcivil estadocivil statocivile relationship "
        "children kids kinder enfants hijos figli dependents household householdsize haushalt siblings family",
        "marital familienstand haushalt household",
    ),
    _sense("an origin", "quasi", "race ethnicity ethnic ethnie raza etnia origin tribe caste", "ethnic"),
    _sense("a language", "quasi", "language languages sprache langue idioma lingua taal", "muttersprach"),
    _sense(
        "a body",
        "quasi",
        "height weightkg bodyweight eyecolor eyecolour haircolor haircolour groesse grosse gewicht taille estatura "
        "peso bmi shoesize",
        "koerpergr korpergr koerpergew korpergew",
    ),
    _sense(
        "a time",
        "quasi",
        "year years month jahr monat jahrgang annee ano anno mes mese jaar",
        "",
    ),
    _sense(
        "an institution that someone goes to",
        "quasi",
        "hospital clinic ward department branch store shop klinik krankenhaus abteilung filiale station faculty "
        "hopital agence sucursal insurer krankenkasse kasse",
        "hospital krankenh krankenkasse abteilung filiale",
    ),
    _sense("a vehicle", "quasi", "car vehicle vehiclemake vehiclemodel fahrzeug voiture coche", "fahrzeug"),
)
SENSITIVE = (
    _sense(
        "an illness",
        "sensitive",
        "icd icd10 dx disease diseases illness hiv aids cancer tumor tumour diabetes symptom symptoms maladie "
        "enfermedad malattia ziekte doenca condition conditions",
        "diagnos disease krankheit erkrank symptom syndrom disorder comorbid pregnan schwanger behinder disabilit "
        "allerg addict",
    ),
    _sense(
        "a treatment",
        "sensitive",
        "treatment treatments drug drugs medication medications prescription procedure surgery operation ops drg rx "
        "traitement tratamiento",
        "therap medikament medication behandlung treatment operation prozedur procedur",
    ),
    _sense(
        "money",
        "sensitive",
        "income salary wage wages pay earnings wealth debt debts loan loans creditscore creditrating creditrisk credit "
        "mortgage gehalt lohn einkommen vermoegen vermogen schulden kredit bonitaet bonitat schufa revenu salaire "
        "sueldo salario ingreso ingresos stipendio reddito inkomen saldo balance kontostand pension default "
        "bankruptcy",
        "income salary einkommen gehalt",
    ),
    _sense(
        "a belief",
        "sensitive",
        "religion faith confession konfession creed politics party partei union gewerkschaft vote",
        "religio konfession politic",
    ),
    _sense("a sexual life", "sensitive", "sexualorientation orientation", "sexualor sexuell"),
    _sense(
        "an offence",
        "sensitive",
        "crime criminal offense offence conviction convicted arrest sentence fraud violation delit delito reato",
        "criminal straftat vorstraf convict",
    ),
)

# Whom a table may be about: with a word for a number, the name of a person's id.
_PERSONS = _words(
    "patient customer client subscriber member person employee student pupil participant respondent subject citizen "
    "resident tenant passenger donor insured policyholder applicant borrower debtor voter proband teilnehmer kunde "
    "versichert mitarbeiter mitglied schueler schuler einwohner buerger nutzer personal cliente paciente paziente "
    "abonne usuario utente medewerker klant benutzer taxpayer beneficiar guest individu"
)
_PERSON_WORDS = _words("user users staff player")
_NUMBERS = _words("id ids uid key nr no number nummer numero identifier ident kennung kennziffer identifiant")
_MAYBE_NUMBERS = _words("num code ref reference")  # of a zip code, too
_NUMBER_ENDS = ("id", "nr", "no", "nummer", "number", "key")
# Last words that tell that the column is about a thing's kind, not about the thing: `phone_type`.
_KINDS = _words(
    "type typ kind art count anzahl status flag plan tariff model category class group segment level code size changes "
    "changed verified"
)
_THINGS = _words(
    "product produkt item article tariff plan file column table field brand event campaign service device channel "
    "project drug test procedure"
)


def tokens(name: str) -> tuple[str, ...]:
    """A column's name in parts, lower-case and without accents.

    >>> tokens("patientBirthDate"), tokens("Straße_Nr.2"), tokens("ZIPCode"), tokens("âge")
    (('patient', 'birth', 'date'), ('strasse', 'nr', '2'), ('zip', 'code'), ('age',))
    """
    spelt = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(letter for letter in spelt if not unicodedata.combining(letter))
    return tuple(part.lower() for part in _TOKEN.findall(plain))


@dataclass(frozen=True)
class Name:
    """What a column's name says.

    Attributes:
        senses: Everything it may be about.
        person_id: It names the id of a person: a word for whom, and a word for a number.
        id_like: It names a number or key of something.
    """

    senses: tuple[Sense, ...]
    person_id: bool
    id_like: bool

    def of(self, meaning: Meaning) -> Sense | None:
        """The first sense with this meaning."""
        return next((sense for sense in self.senses if sense.meaning == meaning), None)


def read_name(name: str) -> Name:
    """The senses of a column's name.

    >>> [sense.title for sense in read_name("first_name").senses], read_name("Kundennummer").person_id
    (["a person's name"], True)
    >>> [sense.title for sense in read_name("city_name").senses], read_name("product_name").senses
    (['a place'], ())
    """
    parts = tokens(name)
    runs = {
        "".join(parts[start:stop])
        for start in range(len(parts))
        for stop in range(start + 1, min(len(parts), start + _LONGEST_PHRASE) + 1)
    }
    found = [sense for sense in (*IDENTIFIERS, *QUASI_IDENTIFIERS, *SENSITIVE) if _fits(sense, parts, runs)]
    about_things = bool(parts) and (parts[-1] in _KINDS or not _THINGS.isdisjoint(parts))
    strong = [sense for sense in found if not sense.weak]
    senses = tuple(strong if strong or about_things else found)
    return Name(senses, person_id=_is_person_id(parts, senses), id_like=_is_id_like(parts))


def _fits(sense: Sense, parts: tuple[str, ...], runs: set[str]) -> bool:
    return not sense.words.isdisjoint(runs) or any(stem in part for stem in sense.stems for part in parts)


def _is_id_like(parts: tuple[str, ...]) -> bool:
    return bool(parts) and "of" not in parts and not _NUMBERS.isdisjoint({parts[0], parts[-1]})


def _is_person_id(parts: tuple[str, ...], senses: tuple[Sense, ...]) -> bool:
    persons = [part for part in parts if part in _PERSON_WORDS or any(stem in part for stem in _PERSONS)]
    if not persons or "of" in parts:
        return False
    if _is_id_like(parts) or any(part.endswith(_NUMBER_ENDS) for part in persons):
        return True
    # `patient_code` and `customer`, but not `customer_zip_code`.
    alone = len(parts) == 1 and (persons[0] in _PERSON_WORDS or persons[0].removesuffix("s") in _PERSONS)
    return alone or (parts[-1] in _MAYBE_NUMBERS and not senses)
