"""A module that an engine imports. It depends on a variable, and sets one."""

import os
import random

READ = os.environ.get("READ_BY_IMPORT")
RANDOM = random.random()
os.environ["SET_BY_IMPORT"] = "imported"
print("imported")
