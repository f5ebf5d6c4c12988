"""Brings the index up to date with the store and the live sessions; answers no query."""
