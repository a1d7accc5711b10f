"""The torch that the package is built for: the one that is installed where pip installs to, which build isolation hides.

pip isolates a build by its PYTHONPATH: without that, the same Python has its own packages again. Other front ends
(uv, build) make a virtual environment for it, where nothing tells of the first; they need --no-build-isolation.

pyproject.toml takes `dependencies` from here; CMakeLists.txt runs it as a program.
"""

import os
import subprocess
import sys

_VERSION = "import importlib.metadata as m; print(m.version('torch'))"
_TORCH = """
import importlib.util, json, os, torch
ucx = importlib.util.find_spec("libucx")
print(json.dumps({"version": torch.__version__, "folder": os.path.dirname(torch.__file__),
                  "abi": int(torch._C._GLIBCXX_USE_CXX11_ABI), "ucx": os.path.dirname(ucx.origin) if ucx else ""}))
"""


def _ask(program):
    """What the program prints, in this environment or in the one around it."""
    isolation = ("PYTHONPATH", "PYTHONNOUSERSITE")
    around = {name: value for name, value in os.environ.items() if name not in isolation}
    for environment in (None, around):
        said = subprocess.run([sys.executable, "-c", program], env=environment, text=True, capture_output=True)
        if said.returncode == 0:
            return said.stdout.splitlines()[-1]
    why = said.stderr.strip().splitlines() or [f"{sys.executable} ended with status {said.returncode}"]
    raise SystemExit(f"torch, which meshcoll is compiled for, is not in {sys.prefix}:\n"
                     f"  {why[-1]}\n"
                     "Install it first; where it is there, and only hidden by the isolation of uv or build, build without:\n"
                     "  pip install torch scikit-build-core\n"
                     "  pip install --no-build-isolation ./python")


def dynamic_metadata(field, _settings):
    """A wheel asks for the torch that it was built for: another minor version has other classes."""
    if field != "dependencies":
        raise ValueError(f"expected the field dependencies, got {field}")
    return ["torch==" + ".".join(_ask(_VERSION).split(".")[:2]) + ".*"]


if __name__ == "__main__":
    print(_ask(_TORCH))
