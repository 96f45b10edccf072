"""What every stage uses: dtypes, errors, hashes, threads and reports of progress."""
