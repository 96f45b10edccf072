"""The package's own exceptions."""


class ModelFormatError(ValueError):
    """A model file is cut, foreign, damaged or of an unknown version, or a pickle is damaged."""


class BackendError(RuntimeError):
    """A backend was asked for that is unknown or cannot run on this machine."""


class ClusterError(RuntimeError):
    """A process of several that grow one forest together has failed or is not reached."""


def damaged(what: str) -> ModelFormatError:
    """The error of a model in which `what` is wrong."""
    return ModelFormatError(f"damaged model: {what}; take an undamaged copy, or save it again")


def need(condition: object, otherwise: str) -> None:
    """Raise ModelFormatError that says what is wrong, unless the condition holds."""
    if not condition:
        raise damaged(otherwise)
