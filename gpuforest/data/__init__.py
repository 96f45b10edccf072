"""What users pass becomes arrays: files, frames, tables and categories, each checked first."""
