"""What several features state alike: errors, request fields, clipping, titles; no feature."""
