"""`python -m reconciler`: the command line, for launchers that take a file: spark-submit."""

from reconciler.cli import main

if __name__ == "__main__":
    main()
