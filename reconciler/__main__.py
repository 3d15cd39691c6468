"""`python -I -m reconciler`: the command line, if no script of it is on the PATH."""

from reconciler.cli import main

if __name__ == "__main__":
    main()
