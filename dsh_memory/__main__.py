"""``python -m dsh_memory`` is the command ``dsh-memory``."""

from dsh_memory.interfaces.cli.main import main

if __name__ == "__main__":
    main()
