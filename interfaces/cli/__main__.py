"""``python -m interfaces.cli`` is ``dsh-memory``."""

from interfaces.cli.main import main

main()
