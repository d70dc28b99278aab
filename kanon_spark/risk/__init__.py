"""How easily someone is found in a table, and in its release: measures, and a linkage attack that is carried out."""

from kanon_spark.risk.assessment import assess, table_risk
from kanon_spark.risk.attack import linkage_attack
from kanon_spark.risk.coverage import Reading, readings_by_config, readings_by_shape
from kanon_spark.risk.facts import Attack, AttackSide, ClassRisk, Guess, Risk, RiskReport, TableRisk
from kanon_spark.risk.limits import models_by_config

__all__ = [
    "Attack",
    "AttackSide",
    "ClassRisk",
    "Guess",
    "Reading",
    "Risk",
    "RiskReport",
    "TableRisk",
    "assess",
    "linkage_attack",
    "models_by_config",
    "readings_by_config",
    "readings_by_shape",
    "table_risk",
]
