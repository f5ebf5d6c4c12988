"""Events of one log in order, and the text of each that is searchable; no store."""
