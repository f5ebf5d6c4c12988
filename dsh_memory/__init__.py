"""The one name of this program in site-packages: everything else is imported from below it.

    from dsh_memory.sessionquery import EngineOptions, SessionQueryEngine

In a wheel the packages lie in this folder. In a checkout they are its siblings, at the top of the
repository, and `__path__` names that place, so that both have the same import names and nothing
of a caller's own ``pipeline`` or ``runtime`` can take their place.
"""

from os import path as _path

_here = _path.dirname(_path.abspath(__file__))
if not _path.isdir(_path.join(_here, "pipeline")):
    __path__.append(_path.dirname(_here))
