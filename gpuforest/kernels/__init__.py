"""A folder for each operation, with a file for each implementation; NumPy's is the specification.

The implementations of an operation have the same function name, order of arguments, index letters
and numbered steps, so that they can be read side by side.
"""
