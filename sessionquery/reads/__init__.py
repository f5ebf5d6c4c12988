"""Exact reads and traces of sessions and events; no index."""
