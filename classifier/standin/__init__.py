"""A small System One server for trying the filter and for tests; the filter never imports it."""
