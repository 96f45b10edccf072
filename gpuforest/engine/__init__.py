"""The engine: values become codes, trees grow, forests predict."""
