# Databricks notebook source
# MAGIC %md
# MAGIC # Anonymize a table
# MAGIC A made-up table of hospital admissions becomes a release in which every patient hides among at least k.
# MAGIC Change the widgets, or put your own table and columns in their places.
# MAGIC
# MAGIC Needs: `%pip install kanon-spark`.

# COMMAND ----------

import kanon_spark
from kanon_spark.demo.table import make_admissions

# Widgets where there are some; the same notebook runs elsewhere with what stands behind them.
asked = {"rows": "5000", "k": "10"}
if "dbutils" in globals():
    for name, value in asked.items():
        dbutils.widgets.text(name, value)
    asked = {name: dbutils.widgets.get(name) for name in asked}
rows, k = int(asked["rows"]), int(asked["k"])

# COMMAND ----------

# MAGIC %md
# MAGIC ## The table
# MAGIC One row per stay. Names and patient numbers identify; age, sex, zip and date of admission are what a neighbour,
# MAGIC an employer or a register may know; the diagnosis is what nobody should learn.

# COMMAND ----------

admissions = spark.createDataFrame(make_admissions(rows).to_pandas())
admissions.select("age", "sex", "zip", "admission_date", "diagnosis").show(5)

# COMMAND ----------

# MAGIC %md
# MAGIC ## What is asked
# MAGIC Hierarchies say how each column may become coarser. `unit` makes k count patients, not rows: some come twice.
# MAGIC Columns that nobody has named are dropped.

# COMMAND ----------

job = kanon_spark.Anonymizer(
    name="admissions",
    quasi_identifiers={
        "age": {"hierarchy": {"interval": {"widths": [5, 10, 20, 40]}}},
        "sex": {"hierarchy": "flat"},
        "zip": {"hierarchy": {"prefix": {"keep": [4, 3, 2, 1]}}},
        "admission_date": {"hierarchy": {"date": {"levels": ["month", "quarter", "year"]}}},
    },
    identifiers=["name", "patient_id"],
    sensitive=["diagnosis"],
    other="drop",
    unit="patient_id",
    k=k,
)
findings = job.check(admissions)
for finding in findings:
    print(finding.level, finding.path, finding.message)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The release
# MAGIC Formed, written, read back and verified by code of its own; an error means that nothing was released.

# COMMAND ----------

release = job.run(admissions)
release.table.show(5, truncate=False)

# COMMAND ----------

# MAGIC %md
# MAGIC ## How good it is
# MAGIC The loss is the share of detail that was given up; no release with these hierarchies can be below the bound.

# COMMAND ----------

loss, bound = release.metrics["gcp"], release.metrics["gcp_bound"]
print(f"loss {loss:.2%}, at least {bound:.2%} for anybody; {release.manifest['classes']} classes")
release
