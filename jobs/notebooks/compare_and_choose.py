# Databricks notebook source
# MAGIC %md
# MAGIC # Compare and choose
# MAGIC Which method, and which k? Each is carried out on your own table, up to the point where it would be published:
# MAGIC you see what it costs and how well it protects, and take the one that fits.
# MAGIC
# MAGIC Needs: `%pip install 'kanon-spark[utility]'` (scikit-learn, for what classifiers still learn).

# COMMAND ----------

import tempfile
from pathlib import Path

import kanon_spark
from kanon_spark.demo.table import make_admissions

# Widgets where there are some; the same notebook runs elsewhere with what stands behind them.
asked = {"rows": "5000", "methods": "lattice,mondrian,datafly", "max_risk": "0.1"}
if "dbutils" in globals():
    for name, value in asked.items():
        dbutils.widgets.text(name, value)
    asked = {name: dbutils.widgets.get(name) for name in asked}
folder = Path(tempfile.mkdtemp())

# COMMAND ----------

# MAGIC %md
# MAGIC ## The table, and what every release of it must hold
# MAGIC The job says everything but method and k: which columns identify together, how they may become coarser, whom k
# MAGIC counts. What it asks besides k (here that a tenth of the rows may be left out at most) holds for every point.

# COMMAND ----------

admissions = spark.createDataFrame(make_admissions(int(asked["rows"])).to_pandas())
job = kanon_spark.Anonymizer(
    name="admissions",
    quasi_identifiers={
        "age": {"hierarchy": {"interval": {"widths": [5, 10, 20, 40]}}},
        "sex": {"hierarchy": "flat"},
        "zip": {"hierarchy": {"prefix": {"keep": [4, 3, 2, 1]}}},
    },
    identifiers=["name", "patient_id"],
    sensitive=["diagnosis"],
    other="drop",
    unit="patient_id",
    max_suppression=0.1,
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The comparison
# MAGIC Rows are aggregated once, and nothing is published. Big tables are sampled first; the result says so.

# COMMAND ----------

comparison = job.compare(admissions, methods=asked["methods"], k=[5, 10, 50])
comparison

# COMMAND ----------

comparison.table[["method", "k", "gcp", "gcp_bound", "risk", "suppressed", "cpu_seconds", "reason"]]

# COMMAND ----------

# MAGIC %md
# MAGIC ## The curves
# MAGIC One page with loss and bound, risk, discernibility, class sizes and seconds over k, a line for each method.

# COMMAND ----------

page = comparison.page(folder / "compare.html")
if "displayHTML" in globals():
    displayHTML(page.read_text(encoding="utf-8"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## The choice
# MAGIC State what you can accept, as often as you like: nothing is computed again. With a limit of the risk the least
# MAGIC loss wins, with a limit of the loss alone the largest k.

# COMMAND ----------

chosen = comparison.choose(max_risk=float(asked["max_risk"]))
best = chosen.best or chosen.nearest
print(f"{best.method}, k = {best.k}: loss {best.gcp:.2%}, at least {best.gcp_bound:.2%} for anybody")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Carried out
# MAGIC The choice is a configuration like any other: here it is read back and run, and only now anything is released.

# COMMAND ----------

path = chosen.write_config(folder / "choice.yaml", cell=best)
release = kanon_spark.Anonymizer.from_yaml(path).run(admissions)
release
