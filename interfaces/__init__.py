"""How people and agents reach the program: command line, agents' server, page; no logic."""
