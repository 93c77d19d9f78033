import sys
from pathlib import Path

# The boards stand beside the tests, which pytest imports one by one.
sys.path.insert(0, str(Path(__file__).parent))
