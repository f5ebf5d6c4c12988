"""Which sessions a home has, and which of them belong together; opens no event."""
