"""Writes one new Markdown note into a vault; what stands in the note is decided in `pipeline`."""
