import sys
from pathlib import Path

# The programs import their neighbours, as they do when they are run by hand.
sys.path.insert(0, str(Path(__file__).parent))
