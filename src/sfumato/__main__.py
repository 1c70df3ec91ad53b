"""``sfumato`` and ``python -m sfumato``: whoever interrupts before anything has begun sees no traceback."""

import os
import sys

INTERRUPTED = 130


def entry() -> None:
    """The console script. Loading the command line takes a moment, in which there is nothing to tidy up."""
    try:
        import signal

        waiting = signal.getsignal(signal.SIGINT)
        # Some parents have it ignored (nohup), which stays so. An exception might be lost or wrapped inside an import.
        if waiting is signal.default_int_handler:
            signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
        from sfumato.cli import main

        signal.signal(signal.SIGINT, waiting)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    sys.exit(main())


if __name__ == "__main__":
    entry()
