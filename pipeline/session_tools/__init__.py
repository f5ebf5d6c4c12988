"""The engine's search and reads as tools for an agent in a workspace; no relevance filter."""
