"""Recall over main sessions with a scan for parts of words; no relevance filter."""
