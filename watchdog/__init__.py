"""Says which rank holds up a hung RL weight sync, where, and why.

PyPI has another distribution that owns this package name (file-system events), and training
images have it. Both install into one folder, in any order, so this file defines nothing:
import from the modules, e.g. `from watchdog.section import weight_sync`.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
