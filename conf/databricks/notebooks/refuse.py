# Databricks notebook source
# MAGIC %md
# MAGIC # Nothing was published
# MAGIC Runs only after an anonymization that ended with exit code 2, 3 or 4, and fails, so that the job does.

# COMMAND ----------

MEANINGS = {
    "2": "the request: configuration, hierarchy file, missing table or column, unwritable target",
    "3": "the data does not fit the request",
    "4": "a guarantee does not hold, or more suppression than allowed; the previous release stays",
}
for name in ("exit_code", "message"):
    dbutils.widgets.text(name, "")
code, message = dbutils.widgets.get("exit_code"), dbutils.widgets.get("message")
raise RuntimeError(f"exit code {code} ({MEANINGS.get(code, 'unexpected')}): {message}")
