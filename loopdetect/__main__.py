"""`python -m loopdetect` is the command `loopdetect`."""

import sys

from loopdetect.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
