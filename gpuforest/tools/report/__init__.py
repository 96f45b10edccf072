"""A report of a model for people, as one HTML file."""
