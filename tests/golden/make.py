"""Write the golden files anew: `python tests/golden/make.py`.

Small models of format version 1 and what they predict. A release that reads version 1 reads
these: after the first release they stay as they are, and a later version's are put beside them.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

import gpuforest as gf

HERE = Path(__file__).parent
BOOSTED = {"max_iter": 4, "max_leaf_nodes": 4, "min_samples_leaf": 5, "early_stopping": True}


def table():
    """An Arrow table of 60 rows with missing values, whole numbers y i64[60]; without any random
    generator, whose numbers may change."""
    i = np.arange(180).reshape(60, 3)
    X = (i * 37 % 101) / 8
    X[::7, 1] = np.nan
    y = np.nan_to_num(X[:, 1]) + X[:, 0] * X[:, 2]
    return pa.table(dict(zip("abc", X.T, strict=True))), y.astype(int)


def models():
    """Unfitted models and their targets, by name."""
    _, y = table()
    names = np.array(["east", "north", "süd"])
    given = {"random_state": 7, "backend": "numpy"}
    weighed = {"max_depth": 4, "class_weight": {"east": 2.0}, "oob_score": True}
    return {
        "classifier": (gf.RandomForestClassifier(20, **weighed, **given), names[y % 3]),
        "regressor": (gf.RandomForestRegressor(5, **given), y / 4),
        "tree": (gf.DecisionTreeClassifier(max_depth=4, **given), y % 3),
        "outputs": (
            gf.RandomForestClassifier(4, criterion="entropy", max_depth=4, **given),
            np.stack([names[y % 3], names[y // 3 % 2]], axis=1),
        ),
        "bags": (
            gf.BaggingClassifier(
                gf.DecisionTreeClassifier(max_depth=3, backend="numpy"),
                5,
                max_features=2,
                voting="hard",
                random_state=7,
            ),
            y % 3,
        ),
        "monotonic": (
            gf.DecisionTreeRegressor(max_depth=5, monotonic_cst=[1, 0, 0], **given),
            y + 5.0 * (y % 3),
        ),
        "categories": (
            gf.RandomForestClassifier(
                "auto",
                oob_tol=1.0,
                max_estimators=12,
                max_depth=3,
                categorical_features=["c"],
                **given,
            ),
            names[y % 3],
        ),
        "multiway": (
            gf.DecisionTreeClassifier(
                criterion="gain_ratio",
                categorical_features=["b"],
                categorical_split="multiway",
                max_depth=2,
                **given,
            ),
            y % 3,
        ),
        "combinations": (
            gf.RandomForestClassifier(
                4, feature_combinations=2.5, combination_weights="integer", max_depth=4, **given
            ),
            names[y % 3],
        ),
        "pruned": (gf.DecisionTreeRegressor(ccp_alpha="cv", ccp_cv=3, **given), y / 4),
        "embedding": (gf.RandomTreesEmbedding(3, max_depth=3, **given), None),
        "boosted_classes": (gf.HistGradientBoostingClassifier(**BOOSTED, **given), names[y % 3]),
        "boosted_counts": (gf.HistGradientBoostingRegressor("poisson", **BOOSTED, **given), y),
    }


def answers(model):
    """What a model says of the table, as JSON holds it to the last bit."""
    X, _ = table()
    found = {"apply": model.apply(X).tolist()} if hasattr(model, "apply") else {}
    for name in ("train_score_", "validation_score_"):
        if hasattr(model, name):
            found[name] = getattr(model, name).tolist()
    for name in ("predict", "predict_proba"):
        if hasattr(model, name):
            answer = getattr(model, name)(X)
            outputs = answer if isinstance(answer, list) else [answer]
            found[name] = [output.tolist() for output in outputs]
    return found


def main():
    expected = {}
    for name, (model, y) in models().items():
        model.fit(table()[0], y).save(HERE / f"{name}.safetensors")
        expected[name] = answers(model)
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in expected.items()]
    (HERE / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
