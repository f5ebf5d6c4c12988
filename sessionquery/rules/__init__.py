"""What makes a log valid: envelopes, messages, chains, citations, the surface; reads no file."""
