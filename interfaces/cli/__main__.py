"""``python -m dsh_memory.interfaces.cli`` is ``dsh-memory``."""

from dsh_memory.interfaces.cli.main import main

main()
