"""Tools for every stage: dtypes, errors, hashes, threads and reports of progress."""
