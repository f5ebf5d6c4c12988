"""The agents' server: tool sets over stdio and loopback HTTP; what a tool does is in `pipeline`."""
