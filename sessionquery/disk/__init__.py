"""Bytes and names of the store: directories, frames, headers, writer locks; no events."""
