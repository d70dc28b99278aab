# Databricks notebook source
# MAGIC %md
# MAGIC # Anonymize, as a scheduled job runs it
# MAGIC Does what `kanon run CONFIG` does, in the session of this notebook. Ends well for every outcome that another try
# MAGIC would not change, and tells it as a task value; fails, so that the job tries again, where one might.

# COMMAND ----------

import json
import os

from kanon_spark import Anonymizer, KanonError

asked = {}
for name in ("config", "catalog", "run_key", "secret_scope", "secret_key", "set"):
    dbutils.widgets.text(name, "")
    asked[name] = dbutils.widgets.get(name)

# COMMAND ----------

# MAGIC %md
# MAGIC ## What the configuration fills in
# MAGIC `${KANON_CATALOG}` and `${KANON_KEY}` come from the environment. The key is read from the secret scope, is in no
# MAGIC parameter of the job, and Databricks blackens it where it would be printed.

# COMMAND ----------

os.environ["KANON_CATALOG"] = asked["catalog"]
if asked["secret_scope"]:
    os.environ["KANON_KEY"] = dbutils.secrets.get(asked["secret_scope"], asked["secret_key"])
changes = [change for change in asked["set"].split(";") if change]
if asked["run_key"]:
    changes.append(f"schedule.run_key={json.dumps(asked['run_key'])}")

# COMMAND ----------

# MAGIC %md
# MAGIC ## The run, and what the job does next
# MAGIC | exit code | here |
# MAGIC |---|---|
# MAGIC | 0 | published; the next task sees `exit_code` 0 |
# MAGIC | 2, 3, 4 | nothing was published, and another try would change nothing; the next task tells |
# MAGIC | 1, 5 | unexpected; locked or out of time: this task fails, and is tried again |

# COMMAND ----------

code, message = 0, ""
try:
    job = Anonymizer.from_yaml(asked["config"], overrides=changes)
    release = job.run(spark=spark, listeners=[lambda event: print(event.stage, event.state, event.text)])
except KanonError as error:
    if error.exit_code in (1, 5):
        raise
    code, message = error.exit_code, str(error)
    print(message)
dbutils.jobs.taskValues.set("exit_code", str(code))
dbutils.jobs.taskValues.set("message", message[:1000])
