"""The index file itself: where it lies, its locks, schema and tables; no search."""
