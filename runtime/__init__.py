"""Configuration, the local model service, the root of the error tree; knows no search."""
