"""Search: the index file and its life; nothing here decides what a log means."""
