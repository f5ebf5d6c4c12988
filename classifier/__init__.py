"""Scores snippets with a local System One model and keeps the relevant ones; knows no store, no
note and no request.
"""
