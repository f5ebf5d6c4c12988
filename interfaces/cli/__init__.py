"""The commands: words to requests, results to text or JSON, errors to exit statuses."""
