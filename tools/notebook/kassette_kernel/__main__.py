"""python3 -m kassette_kernel CONNECTION_FILE [COMMAND...]: the kernel, with the command of the REPL up to `--serve`, or with that of the wheel."""
import pathlib
import sys

from .session import Session

package = pathlib.Path(__file__).resolve().parents[1] / "kassette"
command = sys.argv[2:] or [str(package / "repl"), "--include", str(package / "include"), "--serve"]
first = Session(command)   # its headers are read while Python reads ipykernel's modules

from ipykernel.kernelapp import IPKernelApp  # noqa: E402

from .kernel import KassetteKernel  # noqa: E402

KassetteKernel.command, KassetteKernel.first = command, first
IPKernelApp.launch_instance(argv=["-f", sys.argv[1]], kernel_class=KassetteKernel)
