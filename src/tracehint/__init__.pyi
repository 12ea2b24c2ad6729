from tracehint.analyzer.model import Options as Options
from tracehint.api import Run as Run
from tracehint.api import load as load

__version__: str
