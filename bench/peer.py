"""Where things are and how the peer's programs are built, for the scripts beside this file."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
OUT = ROOT / "build" / "bench"
COMPILE = ["g++", "-std=c++20", "-O2"]
PARTS = {"cases_torch": ["sequence_torch", "steps_torch"]}  # further sources of a program


def torch_folder():
    """The installed torch folder: the one VOLTA_TORCH names, or our own, installed if it is not there."""
    if os.environ.get("VOLTA_TORCH"):
        OUT.mkdir(parents=True, exist_ok=True)
        return pathlib.Path(os.environ["VOLTA_TORCH"])
    found = sorted((OUT / "peer").glob("lib/python3*/site-packages/torch"))
    if not (OUT / "peer" / "installed").exists() or not found:
        print("installing the peer into build/bench/peer (once)", file=sys.stderr)
        subprocess.run([BENCH / "setup_peer"], check=True, stdout=sys.stderr)
        found = sorted((OUT / "peer").glob("lib/python3*/site-packages/torch"))
    return found[0]


def torch_includes():
    include = torch_folder() / "include"
    return ["-isystem", str(include), "-isystem", str(include / "torch/csrc/api/include")]


def torch_program(name):
    """Builds bench/<name>.cpp against LibTorch if it is older than its sources, and returns its path."""
    sources, program = [BENCH / f"{part}.cpp" for part in [name, *PARTS.get(name, [])]], OUT / name
    torch = torch_folder()
    newest = max(p.stat().st_mtime for p in [*sources, *BENCH.glob("*.h"), torch / "lib" / "libtorch_cpu.so"])
    if program.exists() and program.stat().st_mtime > newest:
        return program
    print(f"building {program.relative_to(ROOT)}", file=sys.stderr)
    libraries = torch / "lib"
    subprocess.run([*COMPILE, *map(str, sources), *torch_includes(), "-o", str(program), f"-L{libraries}", "-ltorch",
                    "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{libraries}",
                    "-Wl,--unresolved-symbols=ignore-in-shared-libs"], check=True)
    return program


def torch_environment():
    """LibTorch's CPU library loads the CUDA run time of the nvidia-* wheels even where there is no GPU."""
    torch = torch_folder()
    folders = [torch / "lib", *sorted((torch.parent / "nvidia").glob("*/lib"))]
    before = os.environ.get("LD_LIBRARY_PATH")
    return {**os.environ, "LD_LIBRARY_PATH": ":".join([*map(str, folders), *([before] if before else [])])}


def our_program(path):
    path = pathlib.Path(path)
    if not path.exists():
        sys.exit(f"{path} is not there: build Volta with -DVOLTA_BUILD_BENCH=ON first, or say where it is")
    return path.resolve()


def peak_resident_kib(command, environment=None):
    """Runs a program that ends by printing its own peak; a parent cannot ask for it without counting itself."""
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return int(out.split("peak_resident_kib")[1])
