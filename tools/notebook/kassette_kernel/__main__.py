"""python3 -m kassette_kernel CONNECTION_FILE COMMAND...: the kernel, with the command of the REPL up to `--serve`."""
import sys

from .session import Session

first = Session(sys.argv[2:])   # its headers are read while Python reads ipykernel's modules

from ipykernel.kernelapp import IPKernelApp  # noqa: E402

from .kernel import KassetteKernel  # noqa: E402

KassetteKernel.command, KassetteKernel.first = sys.argv[2:], first
IPKernelApp.launch_instance(argv=["-f", sys.argv[1]], kernel_class=KassetteKernel)
