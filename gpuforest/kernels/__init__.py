"""One folder an operation, one file a telling; the NumPy telling is the specification.

The tellings of an operation have the same function name, argument order, index letters
and numbered steps, so that any two can be read side by side.
"""
