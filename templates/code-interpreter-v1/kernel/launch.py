"""Starts the Python kernel. The directory of this file is the last one in which modules are searched."""

import sys

sys.path.append(sys.path.pop(0))

from skerry_kernel.app import KernelApp  # noqa: E402

if __name__ == "__main__":
    KernelApp.launch_instance()
