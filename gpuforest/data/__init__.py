"""Files, frames, tables and categories of users become checked arrays."""
