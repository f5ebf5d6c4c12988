"""JavaScript's meanings that the original relies on: text units, JSON, collation, case."""
