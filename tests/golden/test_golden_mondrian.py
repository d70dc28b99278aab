"""The six patients of the paper behind `mondrian`: with k = 2, the multidimensional table that it prints."""

import numpy as np
import pandas as pd

from kanon_spark.config.models import QiSpec
from kanon_spark.engine.pieces import Solver
from kanon_spark.hierarchy.tree import Domain, Kind
from kanon_spark.kernels.problem import Forest
from kanon_spark.methods.mondrian import Mondrian
from kanon_spark.signatures.codebook import Codebook
from kanon_spark.signatures.qi_columns import built_column

PATIENTS = [
    ("Male", 25, 53711),
    ("Female", 25, 53712),
    ("Male", 26, 53711),
    ("Male", 27, 53710),
    ("Female", 27, 53712),
    ("Male", 28, 53711),
]
# All three are equally wide, so the first is cut: sexes. Men are then widest in age: two and two.
PUBLISHED = [
    ("Male", "[25, 26]", "53711"),
    ("Female", "[25, 27]", "53712"),
    ("Male", "[25, 26]", "53711"),
    ("Male", "[27, 28]", "[53710, 53711]"),
    ("Female", "[25, 27]", "53712"),
    ("Male", "[27, 28]", "[53710, 53711]"),
]


def test_the_papers_patients() -> None:
    columns = []
    codes = np.empty((len(PATIENTS), 3), np.int32)
    for j, name in enumerate(("sex", "age", "zip")):
        values = sorted({patient[j] for patient in PATIENTS})
        kind: Kind = "text" if name == "sex" else "integer"
        positions = np.array([np.nan if isinstance(value, str) else float(value) for value in values])
        domain = Domain(kind, tuple(map(str, values)), positions, np.ones(len(values), np.int64))
        columns.append(built_column(name, QiSpec(), domain))
        codes[:, j] = [values.index(patient[j]) for patient in PATIENTS]
    book = Codebook(tuple(columns))
    frame = pd.DataFrame(book.layout.pack(codes), columns=book.layout.names())
    frame["h"] = np.arange(len(frame))
    frame[["rows", "persons", "g_hi", "g_lo"]] = 1
    trees = [column.tree for column in columns]
    forest = Forest.of(trees, book.weights, [np.ones(tree.leaves, np.bool_) for tree in trees])
    solver = Solver(book, forest, Mondrian(), k=2, whole_size=len(frame), seed=0)
    entries = solver.solve(frame).sort_values("h")
    found = entries[["label_0", "label_1", "label_2"]].itertuples(index=False, name=None)
    assert list(found) == PUBLISHED
