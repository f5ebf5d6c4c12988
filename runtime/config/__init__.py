"""Layered settings: read, checked, shown and edited; nothing that acts on them."""
