"""What Python and the command line share: one typed function per verb, in the module of its name.

``import sfumato`` has all of them. Nothing is imported here, so a command loads the verb that it needs.
"""

from sfumato.registry import exports

__getattr__, __dir__ = exports(__name__)
