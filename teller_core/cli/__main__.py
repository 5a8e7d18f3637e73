"""``python -m teller_core.cli`` is ``teller``."""

import sys

from teller_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
