"""``python -m specsim``: the command line without its script."""

from specsim.cli.app import main

if __name__ == "__main__":
    main()
