"""Search, review and read: the strict stages in order, their requests, results, notes and text."""
