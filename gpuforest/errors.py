"""The package's own exceptions."""


class ModelFormatError(ValueError):
    """A model file is cut, foreign, damaged or of an unknown format version."""


class BackendError(RuntimeError):
    """A backend was asked for that is unknown or cannot run on this machine."""
