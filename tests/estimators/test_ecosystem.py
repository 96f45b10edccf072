"""docs/ecosystem.md: each tool that it names, as it says. `.ci/ecosystem` installs them all."""

import re

import numpy as np
import pytest
from paths import ROOT
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import cross_val_score

import gpuforest as gf

# what tools warn of is theirs
pytestmark = pytest.mark.filterwarnings("ignore")

PAGE = ROOT / "docs/ecosystem.md"
# of tests/export, for ONNX and treelite, and of test_files.py
ELSEWHERE = {"test_predictions_are_equal_at_every_edge", "test_files_and_pickles_are_the_model"}
X, Y = load_iris(return_X_y=True)
ROWS, NUMBERS = load_diabetes(return_X_y=True)
X, ROWS = X.astype(np.float32), ROWS.astype(np.float32)  # what scikit-learn's trees look at
GAPS = X.copy()
GAPS[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
PARAMS = {"max_depth": 4, "random_state": 0, "backend": "numpy"}
KINDS = ("RandomForest", "ExtraTrees")
FORESTS = [getattr(gf, kind + task) for task in ("Classifier", "Regressor") for kind in KINDS]
TREES = [gf.DecisionTreeClassifier, gf.DecisionTreeRegressor]
BOOSTING = [gf.HistGradientBoostingClassifier, gf.HistGradientBoostingRegressor]
OTHERS = [gf.BaggingClassifier, *BOOSTING]


def tool(name):
    return pytest.importorskip(name, reason=f"{name} is not installed: .ci/ecosystem has it")


def fitted(kind, rows=None, **more):
    """A small model, and the rows that it was fitted to."""
    if kind in FORESTS:
        more = {"n_estimators": 8, **more}
    around = kind in (gf.AdaBoostClassifier, gf.BaggingClassifier)  # whose trees have a depth
    if around:
        more = {"estimator": gf.DecisionTreeClassifier(max_depth=4, backend="numpy"), **more}
    if kind.__name__.startswith("Hist"):
        more = {"max_iter": 8, **more}
    is_classes = kind.__name__.endswith("Classifier")
    rows = (X if is_classes else ROWS) if rows is None else rows
    params = {"random_state": 0} if around else PARAMS
    return kind(**{**params, **more}).fit(rows, Y if is_classes else NUMBERS), rows


def predicted(model, rows):
    if hasattr(model, "classes_"):
        return model.predict_proba(rows)
    return model.predict(rows)[:, None]


def with_categories(kind=gf.RandomForestClassifier, **more):
    pandas = tool("pandas")
    frame = pandas.DataFrame({"name": pandas.Categorical(list("abc") * 50), "x": X[:, 0]})
    return kind(**(more or {"n_estimators": 3}), **PARAMS).fit(frame, Y)


def test_every_row_has_its_test():
    rows = re.findall(r"^\| .+ \| (\w+) \|$", PAGE.read_text(), re.MULTILINE)
    tests = {n for n in globals() if n.startswith("test_")} - {"test_every_row_has_its_test"}
    assert set(rows) - {"test"} - ELSEWHERE == tests


@pytest.mark.parametrize("kind", FORESTS + TREES + BOOSTING)
def test_shap(kind):
    shap = tool("shap")
    model, rows = fitted(kind)
    explainer = shap.TreeExplainer(model)
    found = explainer.shap_values(rows[:20])
    assert np.array_equal(found, shap.TreeExplainer(model.to_sklearn()).shap_values(rows[:20]))
    total = found.sum(axis=1).reshape(20, -1) + explainer.expected_value
    raw = kind is gf.HistGradientBoostingClassifier
    wanted = model.decision_function(rows[:20]) if raw else predicted(model, rows[:20])
    # sums of 64-bit numbers in another order
    assert np.allclose(total, wanted, rtol=1e-9)


def test_shap_of_missing_values_and_categories():
    shap = tool("shap")
    model, rows = fitted(gf.RandomForestClassifier, GAPS)
    explainer = shap.TreeExplainer(model)
    total = explainer.shap_values(rows).sum(axis=1) + explainer.expected_value
    assert np.allclose(total, model.predict_proba(rows), rtol=1e-9)
    with pytest.raises(ValueError, match="categorical features has no thresholds"):
        shap.TreeExplainer(with_categories())
    with pytest.raises(ValueError, match="categorical features are not converted"):
        shap.TreeExplainer(with_categories(gf.HistGradientBoostingClassifier, max_iter=2))


def test_isolation_forests():
    shap, skl2onnx = tool("shap"), tool("skl2onnx")
    tool("onnxruntime")
    rows = ROWS[:150]
    model = gf.IsolationForest(n_estimators=8, random_state=0, backend="numpy").fit(rows)
    theirs = model.to_sklearn()
    found = shap.TreeExplainer(theirs).shap_values(rows[:20])
    assert np.allclose(found, model.shap_values(rows[:20]), rtol=1e-9, atol=1e-12)
    graph = skl2onnx.to_onnx(theirs, rows[:1], target_opset={"": 15, "ai.onnx.ml": 3})
    labels, decisions = onnx_run(graph, {"X": rows})
    # 32 bits
    assert np.allclose(decisions[:, 0], model.decision_function(rows), atol=1e-6)
    assert np.array_equal(labels[:, 0], model.predict(rows))


def onnx_run(graph, feeds):
    from onnxruntime import InferenceSession

    session = InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


@pytest.mark.parametrize("kind", [*FORESTS, *TREES, *OTHERS, gf.AdaBoostClassifier])
def test_skl2onnx(kind):
    skl2onnx = tool("skl2onnx")
    tool("onnxruntime")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    is_classes = kind.__name__.endswith("Classifier")
    options = {"zipmap": False} if is_classes else None
    for rows in (None, GAPS if is_classes else None):
        model, rows = fitted(kind, rows)
        for version in (None, 18):
            graph = skl2onnx.to_onnx(model, rows[:1], options=options, target_opset=version)
            found = onnx_run(graph, {"X": rows})
            assert np.array_equal(found[0].ravel(), model.predict(rows).astype(found[0].dtype))
            if is_classes:
                # exponentials of boosting differ in the last bits
                assert np.allclose(found[1], model.predict_proba(rows), rtol=1e-6, atol=1e-7)
    pipeline = make_pipeline(StandardScaler(), model)
    pipeline.fit(rows, Y if is_classes else NUMBERS)
    found = onnx_run(skl2onnx.to_onnx(pipeline, rows[:1], options=options), {"X": rows})[0]
    # a scaler in 32 bits moves rows across thresholds
    assert np.isclose(found.ravel(), pipeline.predict(rows), rtol=1e-5).mean() > 0.95


def test_skl2onnx_of_what_to_onnx_alone_writes():
    skl2onnx = tool("skl2onnx")
    with pytest.raises(ValueError, match="does not convert categories of gpuforest"):
        skl2onnx.to_onnx(with_categories(), np.zeros((1, 2), np.float32))
    model = gf.RandomForestClassifier(2, **PARAMS).fit(X, np.column_stack([Y, Y > 0]))
    with pytest.raises(ValueError, match="does not convert several outputs of gpuforest"):
        skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    model = gf.RandomForestClassifier(2, **PARAMS).fit(X, Y)
    with pytest.raises(ValueError, match="'decision_path' is not for gpuforest's estimators"):
        skl2onnx.to_onnx(model, X[:1], options={"zipmap": False, "decision_path": True})


@pytest.mark.parametrize("kind", FORESTS + BOOSTING)
def test_treelite(kind):
    treelite = tool("treelite")
    for rows in (None, GAPS) if kind is gf.RandomForestClassifier else (None,):
        model, rows = fitted(kind, rows)
        found = treelite.gtil.predict(treelite.sklearn.import_model(model), rows)
        expected = predicted(model, rows)
        # a sum of eight numbers in another order; a softmax has 32 bits there
        bound = 1e-6 if kind is gf.HistGradientBoostingClassifier else 1e-12
        assert np.allclose(found.reshape(expected.shape), expected, rtol=bound)
    with pytest.raises(ValueError, match="categorical features has no thresholds"):
        treelite.sklearn.import_model(with_categories())


@pytest.mark.parametrize("kind", TREES)
def test_dtreeviz(kind):
    dtreeviz = tool("dtreeviz")
    model, rows = fitted(kind)
    names, y = [f"x{i}" for i in range(rows.shape[1])], Y if rows is X else NUMBERS
    labels = {"class_names": ["a", "b", "c"]} if rows is X else {}
    shown = dtreeviz.model(model, rows, y, feature_names=names, target_name="y", **labels)
    assert re.search(r"x\d", shown.explain_prediction_path(rows[0]))


def test_scikit_learns_inspection():
    from sklearn.inspection import partial_dependence
    from sklearn.tree import export_text

    for kind in (gf.HistGradientBoostingClassifier, gf.HistGradientBoostingRegressor):
        model, rows = fitted(kind)
        ours, theirs = (
            partial_dependence(m, rows, [(0, 2)], method="recursion", grid_resolution=4)["average"]
            for m in (model, model.to_sklearn())
        )
        assert np.array_equal(ours, theirs)
    model, rows = fitted(gf.RandomForestRegressor)
    assert partial_dependence(model, rows, [2], method="recursion")["average"].shape[0] == 1
    assert export_text(model.estimators_[0]) == export_text(model.to_sklearn().estimators_[0])


def test_calibration():
    tool("matplotlib").use("agg")
    from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay

    rows, y = np.concatenate([X, X[::-1]]), np.concatenate([Y, Y[::-1]]) > 1
    for ensemble in (True, False):
        forest = gf.RandomForestClassifier(8, **PARAMS)
        model = CalibratedClassifierCV(forest, method="isotonic", cv=3, ensemble=ensemble)
        assert model.fit(rows, y).score(rows, y) > 0.9
    shown = CalibrationDisplay.from_estimator(model, rows, y, n_bins=3)
    assert len(shown.prob_true) == len(shown.prob_pred) > 1


def test_mlflow(tmp_path, monkeypatch):
    mlflow = tool("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.sklearn.autolog()
    try:
        with mlflow.start_run() as run:
            model, rows = fitted(gf.RandomForestClassifier)
            kept = mlflow.sklearn.log_model(model, name="model", serialization_format="cloudpickle")
            with pytest.raises(mlflow.exceptions.MlflowException, match="skops_trusted_types"):
                mlflow.sklearn.log_model(model, name="other")
    finally:
        mlflow.sklearn.autolog(disable=True)
    assert mlflow.get_run(run.info.run_id).data.params == {}  # autolog logs nothing of ours
    again = mlflow.sklearn.load_model(kept.model_uri)
    assert np.array_equal(again.predict_proba(rows), model.predict_proba(rows))


def test_skops():
    io = tool("skops.io")
    model, rows = fitted(gf.RandomForestClassifier)
    for each in (model, model.to_sklearn()):
        data = io.dumps(each)
        types = io.get_untrusted_types(data=data)
        assert any(t.startswith("gpuforest.") for t in types) == (each is model)
        again = io.loads(data, trusted=types)
        assert np.array_equal(again.predict_proba(rows), model.predict_proba(rows))


def test_imbalanced_learn():
    tool("imblearn")
    from imblearn.ensemble import BalancedBaggingClassifier
    from imblearn.over_sampling import SMOTE
    from imblearn.pipeline import make_pipeline
    from imblearn.under_sampling import InstanceHardnessThreshold

    forest, few = gf.RandomForestClassifier(5, **PARAMS), np.arange(120)
    assert make_pipeline(SMOTE(), forest).fit(X[few], Y[few]).score(X, Y) > 0.9
    bags = BalancedBaggingClassifier(gf.DecisionTreeClassifier(backend="numpy"), random_state=0)
    assert bags.fit(X[few], Y[few]).score(X, Y) > 0.9
    assert len(InstanceHardnessThreshold(estimator=forest).fit_resample(X[few], Y[few])[0]) < 120


def test_boruta():
    boruta = tool("boruta")
    noisy = np.column_stack([X, np.random.default_rng(0).random((150, 2))])
    forest = gf.RandomForestClassifier(5, **PARAMS)
    found = boruta.BorutaPy(forest, n_estimators="auto", max_iter=20, random_state=0)
    assert found.fit(noisy, Y).support_[2:4].all()
    assert not found.support_[4:].any()


def test_mapie():
    regression = tool("mapie.regression")
    model = regression.CrossConformalRegressor(
        gf.RandomForestRegressor(8, **PARAMS), confidence_level=0.9, cv=3
    )
    ends = model.fit_conformalize(ROWS, NUMBERS).predict_interval(ROWS)[1][:, :, 0]
    assert ((ends[:, 0] <= NUMBERS) & (ends[:, 1] >= NUMBERS)).mean() > 0.85


def test_scikit_survival():
    metrics = tool("sksurv.metrics")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    time, end = rng.exponential(np.exp(-rows[:, 0])), rng.exponential(2.0, 300)
    y = np.rec.fromarrays([time <= end, np.minimum(time, end)], names="event,time")
    forest = gf.RandomSurvivalForest(20, random_state=0, backend="numpy").fit(rows[:200], y[:200])
    test, known = rows[200:], y[200:]
    times, risks = np.linspace(0.2, 1.0, 9), forest.predict(test)
    auc, mean = metrics.cumulative_dynamic_auc(y[:200], known, risks, times)
    assert auc.shape == (9,)
    assert mean > 0.65
    assert metrics.concordance_index_ipcw(y[:200], known, risks, 1.0)[0] > 0.65
    harrell = metrics.concordance_index_censored(known["event"], known["time"], risks)[0]
    assert harrell == pytest.approx(forest.score(test, known))
    curves = [curve(times) for curve in forest.predict_survival_function(test)]
    score = metrics.integrated_brier_score(y[:200], known, curves, times)
    assert 0.05 < score < 0.25
    scorer = metrics.as_integrated_brier_score_scorer(forest, times)
    scorer.fit(rows[:200], y[:200])
    assert scorer.score(test, known) == pytest.approx(-score)


def test_optuna():
    optuna = tool("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def score(trial):
        forest = gf.RandomForestClassifier(5, **PARAMS)
        forest.set_params(max_depth=trial.suggest_int("max_depth", 1, 4))
        return cross_val_score(forest, X, Y, cv=2).mean()

    study = optuna.create_study(direction="maximize")
    study.optimize(score, n_trials=3)
    assert study.best_value > 0.5


def test_dask_ml():
    wrappers, array = tool("dask_ml.wrappers"), tool("dask.array")
    model = wrappers.ParallelPostFit(gf.RandomForestClassifier(5, **PARAMS)).fit(X, Y)
    found = model.predict(array.from_array(X, chunks=50)).compute()
    assert np.array_equal(found, model.estimator.predict(X))


def test_econml():
    dml = tool("econml.dml")
    rng = np.random.default_rng(0)
    W = rng.normal(size=(300, 3))
    T = W[:, 0] + rng.normal(size=300)
    nuisance = {name: gf.RandomForestRegressor(20, **PARAMS) for name in ("model_y", "model_t")}
    model = dml.LinearDML(**nuisance, random_state=0).fit(2 * T + W[:, 1], T, X=W[:, :1], W=W)
    # an effect of 2, of 300 rows with noise of size 1
    assert abs(model.effect(np.zeros((1, 1)))[0] - 2) < 0.3


def test_forestci():
    forestci = tool("forestci")
    model = gf.RandomForestRegressor(60, **PARAMS).fit(ROWS, NUMBERS)
    inbag = forestci.calc_inbag(len(ROWS), model.to_sklearn())
    for counts, rows in zip(inbag.T, model.estimators_samples_, strict=True):
        assert np.array_equal(counts, np.bincount(rows, minlength=len(ROWS)))
    # ours have seeds of another generator, which is noticed
    with pytest.raises(ValueError, match="Seed must be"):
        forestci.calc_inbag(len(ROWS), model)
