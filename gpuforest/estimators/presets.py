"""Presets: parameters by a word, for users who will not search. docs/presets.md measures them."""

from typing import Any, ClassVar, Self

Parameters = dict[str, Any]

# of each preset, what the constructor gets in place of its defaults
FOREST: dict[str, Parameters] = {
    "accurate": {
        "n_estimators": 150, "max_features": "oob", "min_samples_leaf": "oob", "bootstrap": True,
        "categorical_split": "auto",
    },
    "fast": {"n_estimators": 50, "min_samples_leaf": 2, "categorical_split": "auto"},
    "scikit-learn": {},
}  # fmt: skip
FOREST_OF_CLASSES = FOREST | {
    "accurate": FOREST["accurate"] | {"criterion": "entropy", "shrinkage": "oob"}
}
BOOSTING: dict[str, Parameters] = {
    "accurate": {
        "learning_rate": 0.05, "max_iter": 1000, "max_leaf_nodes": 16, "min_samples_leaf": 2,
        "l2_regularization": 1.0, "max_features": 0.25, "subsample": 0.9, "early_stopping": True,
        "n_iter_no_change": 50, "refit": True, "categorical_split": "auto",
        "multi_strategy": "multi_output_tree",
    },
    "fast": {
        "learning_rate": 0.15, "max_iter": 60, "max_leaf_nodes": 20, "min_samples_leaf": 10,
        "l2_regularization": 1.0, "max_features": 0.3, "categorical_split": "auto",
    },
    "scikit-learn": {},
}  # fmt: skip
# the same for a target of one column that has no statistics of categories
BOOSTING_OF_ONE = {
    name: {k: v for k, v in given.items() if k not in ("categorical_split", "multi_strategy")}
    for name, given in BOOSTING.items()
}


class HasPresets:
    """Adds `preset`."""

    _presets: ClassVar[dict[str, Parameters]] = FOREST

    @classmethod
    def preset(cls, name: str, **params: Any) -> Self:
        """An estimator, not fitted, with the parameters that a word stands for.

        It is an ordinary estimator: `get_params` shows the parameters, and they can be set.

        Parameters
        ----------
        name : {"accurate", "fast", "scikit-learn"}
            "accurate": the best predictions without a search; "fast": the shortest fit at about
            the accuracy of scikit-learn's defaults; "scikit-learn": these defaults, as
            the constructor has them. See docs/presets.md.
        **params : parameters of the constructor, in place of the preset's

        Returns
        -------
        estimator

        Raises
        ------
        ValueError
            An unknown preset.
        TypeError
            A parameter that the estimator does not have.
        """
        if name not in cls._presets:
            raise ValueError(f"preset {name!r} is unknown: pass one of {', '.join(cls._presets)}")
        given = cls._presets[name]
        if params.get("monotonic_cst") is not None:  # which is refused beside it
            given = {name: value for name, value in given.items() if name != "shrinkage"}
        return cls(**{**given, **params})
