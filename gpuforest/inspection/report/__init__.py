"""What a report tells of a model and of rows: numbers alone, which `export.report` writes."""
