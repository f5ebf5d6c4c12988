"""Answers a search from an index: phrase, matches, order, cursors, snippets; writes nothing."""
