"""Rows of older log generations made into the current one, one step a module."""
