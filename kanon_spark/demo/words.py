"""The demo's vocabulary: invented people, places, occupations and illnesses, with how often and how dear they are."""

from dataclasses import dataclass

_WOMEN = """
Ada Agnes Alma Anna Astrid Bea Carla Clara Dora Edith Ella Emma Eva Flora Frida Greta Hanna Helen Ida Ines Iris Jana
Julia Karen Klara Laura Lena Lisa Lotte Luise Maja Maria Marta Mina Nina Nora Olga Paula Petra Rosa Ruth Sara Selma
Sofia Thea Tilda Vera Wilma Yara Zoe
"""
_MEN = """
Adam Albin Anton Arne Ben Bruno Carl Clemens David Edgar Emil Erik Felix Finn Frank Georg Gustav Hannes Hugo Ivan
Jakob Jan Jonas Josef Julian Karl Kaspar Klaus Leo Levin Linus Lukas Marc Max Milo Moritz Nico Noah Olaf Oskar Otto
Paul Peter Robert Samuel Simon Theo Viktor Walter Yan
"""
_FAMILIES = """
Abel Adler Albrecht Arnold Bach Bauer Becker Berger Binder Blum Brandt Braun Busch Cramer Dietrich Ebert Eder Egger
Ehlers Engel Ernst Falk Feld Fink Fischer Frey Fuchs Gerber Graf Gross Haas Hahn Hansen Hartmann Heller Herzog Hess
Hofer Horn Huber Jansen Jung Kaiser Keller Kern Klein Koch Kramer Kraus Kuhn Lang Lehmann Lenz Lindner Lorenz Ludwig
Maier Marx Meyer Moser Neumann Nowak Ott Petersen Pohl Reuter Richter Roth Sander Sauer Schmidt Schubert Seidel
Simon Sommer Stein Sturm Thiel Thomas Ulrich Vogel Vogt Wagner Walter Weber Weiss Werner Winter Wolf Ziegler Zimmer
"""
FIRST_NAMES = {"female": _WOMEN.split(), "male": _MEN.split()}
LAST_NAMES = _FAMILIES.split()

# The first three digits of a city's zip codes, the biggest city first.
_CITIES = "104 802 201 506 703 603 401 442 012 281 304 901 681 331 475 531 761 653 481 862 991 072 392 180"
CITY_PREFIXES = _CITIES.split()


@dataclass(frozen=True)
class Occupation:
    """How many practise it (relative), and the share of women among them."""

    name: str
    weight: float
    women: float


OCCUPATIONS = (
    Occupation("sales assistant", 9.0, 0.66),
    Occupation("office clerk", 8.5, 0.72),
    Occupation("nurse", 6.0, 0.84),
    Occupation("software developer", 5.0, 0.2),
    Occupation("driver", 5.0, 0.08),
    Occupation("teacher", 4.6, 0.7),
    Occupation("warehouse worker", 4.2, 0.25),
    Occupation("cleaner", 4.0, 0.78),
    Occupation("mechanic", 3.4, 0.06),
    Occupation("accountant", 3.2, 0.6),
    Occupation("care assistant", 3.1, 0.82),
    Occupation("electrician", 2.8, 0.04),
    Occupation("cook", 2.7, 0.42),
    Occupation("engineer", 2.6, 0.18),
    Occupation("kindergarten teacher", 2.4, 0.93),
    Occupation("waiter", 2.2, 0.6),
    Occupation("bank clerk", 2.0, 0.55),
    Occupation("carpenter", 1.8, 0.03),
    Occupation("police officer", 1.7, 0.28),
    Occupation("physician", 1.6, 0.48),
    Occupation("hairdresser", 1.5, 0.86),
    Occupation("farmer", 1.4, 0.24),
    Occupation("social worker", 1.4, 0.75),
    Occupation("plumber", 1.2, 0.02),
    Occupation("lawyer", 1.1, 0.45),
    Occupation("gardener", 1.0, 0.2),
    Occupation("journalist", 0.8, 0.5),
    Occupation("researcher", 0.8, 0.4),
    Occupation("baker", 0.8, 0.3),
    Occupation("pharmacist", 0.7, 0.7),
    Occupation("firefighter", 0.6, 0.04),
    Occupation("architect", 0.5, 0.4),
    Occupation("musician", 0.4, 0.35),
    Occupation("train driver", 0.4, 0.06),
    Occupation("dentist", 0.4, 0.47),
    Occupation("forester", 0.2, 0.12),
    Occupation("pilot", 0.1, 0.07),
    Occupation("judge", 0.1, 0.46),
)
# Those that go with an age rather than with a trade.
PRESCHOOL, PUPIL, STUDENT, RETIRED, JOBLESS = "preschool child", "pupil", "student", "retired", "without work"


@dataclass(frozen=True)
class Diagnosis:
    """How often it is seen at ages 0-14, 15-39, 40-64, 65 and over (relative), in women, and its middling cost."""

    name: str
    by_age: tuple[float, float, float, float]
    women: float
    cost: float


DIAGNOSES = (
    Diagnosis("heart failure", (0.1, 0.5, 4.0, 14.0), 0.47, 5200.0),
    Diagnosis("pneumonia", (4.0, 2.0, 3.5, 8.0), 0.46, 4100.0),
    Diagnosis("birth", (0.0, 16.0, 1.0, 0.0), 1.0, 3300.0),
    Diagnosis("stroke", (0.1, 0.5, 3.0, 8.0), 0.48, 7400.0),
    Diagnosis("hip fracture", (0.3, 0.4, 1.5, 7.0), 0.7, 9100.0),
    Diagnosis("heart attack", (0.0, 0.4, 5.0, 6.0), 0.32, 6800.0),
    Diagnosis("gallstones", (0.1, 3.0, 5.0, 3.5), 0.65, 3900.0),
    Diagnosis("appendicitis", (6.0, 6.0, 2.0, 0.8), 0.48, 3500.0),
    Diagnosis("concussion", (8.0, 4.0, 2.5, 3.0), 0.42, 1500.0),
    Diagnosis("asthma", (7.0, 2.0, 1.5, 1.0), 0.5, 2300.0),
    Diagnosis("diabetes", (1.0, 1.5, 3.5, 4.0), 0.45, 3600.0),
    Diagnosis("depression", (0.6, 6.0, 6.0, 2.0), 0.6, 8200.0),
    Diagnosis("alcohol dependence", (0.1, 5.0, 6.0, 1.2), 0.28, 3000.0),
    Diagnosis("knee replacement", (0.0, 0.2, 4.0, 6.0), 0.6, 8800.0),
    Diagnosis("breast cancer", (0.0, 0.6, 3.5, 3.0), 0.99, 7900.0),
    Diagnosis("prostate cancer", (0.0, 0.0, 2.0, 3.5), 0.0, 7600.0),
    Diagnosis("lung cancer", (0.0, 0.2, 2.5, 3.0), 0.4, 9800.0),
    Diagnosis("kidney stones", (0.1, 2.5, 3.5, 1.5), 0.33, 2700.0),
    Diagnosis("tonsillitis", (7.0, 3.0, 0.5, 0.1), 0.52, 2100.0),
    Diagnosis("broken arm", (6.0, 2.5, 2.5, 4.0), 0.55, 3100.0),
    Diagnosis("newborn care", (14.0, 0.0, 0.0, 0.0), 0.49, 2600.0),
    Diagnosis("epilepsy", (2.5, 1.5, 1.2, 1.5), 0.48, 3300.0),
    Diagnosis("hiv", (0.05, 0.8, 0.6, 0.1), 0.22, 5900.0),
    Diagnosis("sepsis", (0.8, 0.5, 1.5, 4.0), 0.47, 14500.0),
)
