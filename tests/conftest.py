"""What holds for every test: children start with the signals of an ordinary shell."""

from __future__ import annotations

import signal

# A suite that is started in the background inherits ignored signals and would hand them on; the
# program then leaves them ignored, on purpose, and no test of an interruption could work.
for _number, _default in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _default)
