# Databricks notebook source
# MAGIC %md
# MAGIC # Explain a release
# MAGIC For whoever has to sign it: what was promised and proved, what an attacker finds, what the data lost, and a
# MAGIC report for the inside and one that may travel with the release.

# COMMAND ----------

import tempfile
from pathlib import Path

import kanon_spark
from kanon_spark.demo.table import make_admissions

folder = Path(tempfile.mkdtemp())
admissions = spark.createDataFrame(make_admissions(3000).to_pandas())
release = kanon_spark.Anonymizer(
    quasi_identifiers={
        "age": {"hierarchy": {"interval": {"widths": [5, 10, 20, 40]}}},
        "sex": {"hierarchy": "flat"},
        "zip": {"hierarchy": {"prefix": {"keep": [3, 2, 1]}}},
    },
    identifiers=["name", "patient_id"],
    sensitive={"diagnosis": {"l_diversity": 3}},
    other="drop",
    unit="patient_id",
    k=5,
    report={"risk": "full"},
).run(admissions)

# COMMAND ----------

# MAGIC %md
# MAGIC ## What was proved
# MAGIC Each line is a check on the table as it was written, by code that shares nothing with the method.

# COMMAND ----------

for check in release.manifest["checks"]:
    print("passed" if check["passed"] else "FAILED", check["name"], "-", check["detail"])

# COMMAND ----------

# MAGIC %md
# MAGIC ## What an attacker finds
# MAGIC Somebody who knows the quasi-identifiers of a thousand patients looks for them, in the source and the release.

# COMMAND ----------

attack = release.manifest["risk"]["attack"]
for side in ("before", "after"):
    print(f"{side}: found with a chance of {attack[side]['expected']:.1%}, at worst {attack[side]['worst']:.1%}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## What the data lost
# MAGIC Per column: 0% is untouched, 100% is nothing but `*`.

# COMMAND ----------

for name, facts in release.metrics["per_qi"].items():
    print(f"{name}: {facts['ncp']:.1%}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Two reports
# MAGIC The internal one shows sample rows and the configuration. The external one shows no value that fewer than k
# MAGIC patients of the release have, and no count under k.

# COMMAND ----------

internal = release.report(folder / "internal.html")
external = release.report(folder / "external.html", edition="external")
if "displayHTML" in globals():
    displayHTML(external.read_text(encoding="utf-8"))
print(internal.stat().st_size, external.stat().st_size)
