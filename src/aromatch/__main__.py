"""`python -m aromatch` is the command `aromatch`."""

from aromatch.cli import main

if __name__ == "__main__":
    main()
