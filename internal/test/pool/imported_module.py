"""What an engine imports: slow, and dependent on a variable."""

import os
import random

READ = os.environ.get("READ_BY_IMPORT")
RANDOM = random.random()
os.environ["SET_BY_IMPORT"] = "imported"
print("imported")
