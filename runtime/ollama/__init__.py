"""The managed model service: start, share, load and end it; no scoring."""
