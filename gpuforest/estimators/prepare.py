"""The preparation of a fit: what users pass becomes rows, a target, bins and a plan of growth."""

from dataclasses import replace
from typing import Any

import numpy as np

from gpuforest.backends import base, booster, registry
from gpuforest.common import dtypes, progress
from gpuforest.core import bins, criteria
from gpuforest.core.training import Training
from gpuforest.data import arrays, target_statistics, validation
from gpuforest.data.binned import BinnedData, FitInput
from gpuforest.estimators import boosting_fit, by_ids, capabilities, memory, settings
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.estimators.task import On, Rows, n_outputs
from gpuforest.growing import bags, isolation, rounds, targets
from gpuforest.growing.edges import bin_matrix, most_bins
from gpuforest.splits import kinds


def read(estimator: Any, given: FitInput, backend: base.Backend) -> Rows:
    """The rows that a fit is given, checked. It learns the features' names and categories."""
    weight, groups, blocks = given.sample_weight, None, None
    if weight is not None:
        weight = arrays.to_host(weight, "sample_weight")
    X, categories, names = validation.learn_table(estimator, given.X, backend, weight)
    if weight is not None:
        weight = validation.check_weights(weight, X.shape[0])
    if estimator._family not in capabilities.WITHOUT_LABELS:
        if given.groups is not None:
            groups = validation.check_groups(given.groups, X.shape[0])
        if given.blocks is not None:
            blocks = validation.check_groups(given.blocks, X.shape[0], "blocks")
    ids = None if given.row_ids is None else validation.check_ids(given.row_ids, X.shape[0])
    return Rows(X, categories, names, weight, groups, blocks, {}, ids=ids)


def refuse(estimator: Any, params: dict[str, Any], rows: Rows) -> None:
    """Raise a ValueError if the estimator does not support these data with these parameters."""
    uses = capabilities.of_params(params) | rows.uses(estimator.categorical_split)
    words: dict[str, Any] = {"criterion": params.get("criterion")}
    if "outputs" in uses:
        words["shape"] = (rows.n_rows, n_outputs(rows.target))
        uses |= {"outputs of classes"} if rows.target.classes is not None else set()
    capabilities.refuse(estimator._family, uses, **words)


def prepare(estimator: Any, given: FitInput, seed: int, backend: base.Backend) -> TrainingPlan:
    """What the trees of a forest grow from: the rows are checked, encoded and binned."""
    with progress.stage("checking"):
        asked, task = estimator._settings(), estimator._task
        criterion = criteria.CRITERIA[asked.criterion]
        if given.blocks is None:
            settings.check_bags(asked)
        backend = registry.for_splits(backend, criterion, asked.kind)
        rows = read(estimator, given, backend)
        if rows.categories:
            validation.refuse_signs(asked.monotonic_cst, rows.categories, rows.names)
        pool = None
        if asked.even_bins is not None:  # trees draw from a pool of rows, drawn by weight
            counted = rows.n_rows if rows.weight is None else int(np.count_nonzero(rows.weight))
            asked = asked.for_rows(counted)
            pool = isolation.pool_of(seed, rows.n_rows, int(asked.max_samples or 0), rows.integers)
            rows = replace(rows if pool is None else rows.take(pool, backend), weight=None)
        n_rows, given_weights = rows.n_rows, rows.weights
        if hasattr(given.y, "toarray") and not asked.is_single:  # as scikit-learn's forests
            raise ValueError("sparse multilabel-indicator for y is not supported.")
        on = On(criterion, backend, seed)
        checked = task.check(given.y, n_rows, on)
        rows = replace(rows, target=checked)
        refuse(estimator, vars(asked) | vars(estimator), rows)
        if asked.bootstrap == by_ids.BY_IDS:
            drawn = by_ids.sampling_of(asked, n_rows, given_weights, checked, rows.ids)
        else:
            drawn = settings.sampling_of(asked, n_rows, given_weights, checked, rows.groups)
        encoded, blocks = task.encode_target(checked, drawn, on), None
        sampling = judging = encoded.sampling
        if rows.blocks is not None and not asked.is_single:
            blocks = settings.numbered(rows.blocks, sampling)
            judging = replace(sampling, blocks=blocks)
        weights = settings.bin_weights(sampling, given_weights)
        if rows.categories:
            judges = bool(asked.judges or asked.by_error) or estimator._family == "quantiles"
            rows = rows.with_statistics(asked.categorical_split, weights, seed, judges)
        coding, has_sets = encoded.coding, bool(rows.categories)
        factors = settings.prior_factors(asked, checked, drawn, rows.weight)
        coding = coding if factors is None else replace(coding, priors=factors)
        rules = settings.rules_of(asked, rows.X.shape[1], sampling, coding, has_sets)
        if has_sets:
            able = registry.for_categories(backend, coding.n_channels, rules.random)
            if able is not backend:  # from the start, with arrays on the host
                return prepare(estimator, given, seed, able)
        some = rows
        if drawn.rate:
            some, weights = rows.learned_from(bags.learned_from(drawn, seed), weights, backend)
        asked, edges = with_bins(asked, some, weights, backend)
        backend = memory.fitted_to_memory(asked, rows, judging, rules, coding, backend)
    with progress.stage("binning"):
        edges = edges or some.edges(asked.max_bins, weights, seed, backend)
        matrix = bin_matrix(rows.X, edges, backend, rows.judged)
        target = replace(targets.placed(coding, encoded.y, backend), times=encoded.times)
        training = Training(matrix, target, sampling, rules, seed)
        training = kinds.kind_in(training).fitted(backend, training)
    return TrainingPlan(training, backend, asked, checked, drawn, encoded.exposures, blocks, pool)


def with_bins(
    asked: settings.Settings, rows: Rows, weights: np.ndarray | None, backend: base.Backend
) -> tuple[settings.Settings, bins.BinEdges | None]:
    """The settings with the most bins of a feature, and edges that are known before binning."""
    edges, max_bins, binned = None, asked.max_bins, isinstance(rows.X, BinnedData)
    if asked.even_bins is not None:
        even = isolation.even_edges
        edges = rows.X.edges if binned else even(rows.X, asked.even_bins, rows.categories, backend)
        most = edges.n_bins[edges.kinds != dtypes.CATEGORICAL].max(initial=2)
        max_bins = max(int(most), int(asked.max_bins))
    elif not binned:
        max_bins = most_bins(rows.X, asked.max_bins, weights, rows.categories, backend)
    return replace(asked, max_bins=max_bins), edges


def prepare_rounds(
    estimator: Any, given: FitInput, given_val: FitInput | None, seed: int, backend: base.Backend
) -> boosting_fit.BoostingPlan:
    """What rounds grow from; `given_val`: rows that judge; None: early stopping sets some aside."""
    with progress.stage("checking"):
        lacking = boosting_fit.on_host_alone(estimator, given, backend)
        backend = registry.for_boosting(backend, lacking)
        rows = boosting_fit.checked(estimator, read(estimator, given, backend), given.y, backend)
        refuse(estimator, vars(estimator), rows)
        rows = replace(rows, weight=boosting_fit.weigh(estimator, rows))
        rows = boosting_fit.exposed(estimator, rows, given.exposure)
        n_classes = 0 if rows.classes is None else len(rows.classes)
        loss = boosting_fit.loss_of(estimator, n_classes, n_outputs(rows.target), seed)
        rows = boosting_fit.with_offset(rows, given.init_score, loss)
        train, held = boosting_fit.counted(rows, backend), None
        loss.check(train.y)
        rounds.refuse_overflow(train.y, train.weight)
        signs = boosting_fit.signs_of(estimator, loss)
        validation.refuse_signs(signs, rows.categories, rows.names)
        interacting = boosting_fit.interacting(estimator, rows.X.shape[1])
        stops = boosting_fit.stops_early(estimator, len(train.y))
        if given_val is None and stops and estimator.validation_fraction is not None:
            parts = boosting_fit.rows_aside(train, estimator.validation_fraction, loss, seed)
            train, held = (train.take(part, backend) for part in parts)
        train = train.with_statistics(estimator.categorical_split, train.integers, seed)
        boosting_fit.refuse_many_categories(estimator, train.categories)
        if given_val is not None:
            held = boosting_fit.read_held(estimator, given_val, train, loss, backend)
            stops, held = True, boosting_fit.counted(held, backend)
            loss.check(held.y)
        elif held is not None and train.statistics:
            held = replace(held, X=target_statistics.with_numbers(held.X, train.statistics))
        boosting_fit.refuse_unknown_loss(estimator, stops)
        loss = loss.begun(train.y, train.weight)
        backend, n_bytes = memory.boosting_fitted_to_memory(
            estimator, rows, loss, train, held, stops, backend
        )
    with progress.stage("binning"):
        edges = train.edges(estimator.max_bins, train.integers, seed, backend)
        matrix = bin_matrix(train.X, edges, backend)
        if isinstance(given.X, BinnedData) and backend.on_host:
            matrix = boosting_fit.apart(matrix, given.X)
    groups = None
    if train.groups is not None and estimator.subsample < 1:  # numbered anew
        groups = np.unique(train.groups, return_inverse=True)[1].astype(dtypes.ROW)
    boosting = booster.Boosting(
        matrix=matrix, y=np.ascontiguousarray(train.y, np.float64), weight=train.weight,
        loss=loss, signs=signs, groups=interacting, row_groups=groups, memory=n_bytes, seed=seed,
        is_vector=estimator.multi_strategy == "multi_output_tree" and loss.n_raw > 1,
        **boosting_fit.rules_of(estimator, stops),
    )  # fmt: skip
    return boosting_fit.BoostingPlan(boosting, backend, train, held, stops)
