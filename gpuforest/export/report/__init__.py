"""A report of a model for people, as one HTML file; `inspection.report` computes what it tells."""
