"""`make release`: everything that a release publishes, in one folder.

    python -m scripts.release build/release [--image]

    sources of HEAD -> sdist -> wheel, chart, list of components (SBOM), image with --image -> SHA256SUMS

The sources are those of the newest commit: what is not committed is not in it. Run by the environment that
`make release` makes of locks/requirements-release.lock, beside the runtime that the list of components describes.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNTIME = ROOT / ".venv" / "bin" / "python"
CHART = "helm/spanwise"


def main() -> None:
    """Make the folder from nothing; ends with an error where any part cannot be made."""
    parser = argparse.ArgumentParser(
        description="Everything that a release publishes, in one folder."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--image", action="store_true", help="with docker or podman")
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        sources = _sources(Path(temporary))
        _distributions(sources, given.folder)
        _chart(sources, given.folder)
        _components(sources, given.folder)
        if given.image:
            _image(sources, given.folder)
    _sums(given.folder)
    for each in sorted(given.folder.iterdir()):
        sys.stdout.write(f"{each.stat().st_size:>12,}  {each}\n")


def _sources(folder: Path) -> Path:
    """The files of the newest commit."""
    archive = folder / "sources.tar"
    _run("git", "-C", str(ROOT), "archive", "--format=tar", f"--output={archive}", "HEAD")
    sources = folder / "sources"
    with tarfile.open(archive) as tar:
        tar.extractall(sources, filter="data")
    return sources


def _distributions(sources: Path, folder: Path) -> None:
    """The sdist and the wheel that is built from it, as they are uploaded."""
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(sources))
    _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, folder.glob("spanwise-*")))


def _chart(sources: Path, folder: Path) -> None:
    """What `helm package` makes."""
    package = "import sys, helm_python; helm_python.package(sys.argv[1], destination=sys.argv[2])"
    _run(str(RUNTIME), "-c", package, str(sources / CHART), str(folder))


def _components(sources: Path, folder: Path) -> None:
    """The list of what the lock file installs."""
    _run(
        *(sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible"),
        *("--pyproject", str(sources / "pyproject.toml"), "--mc-type", "application"),
        *("--spec-version", "1.6", "-o", str(folder / "sbom.cdx.json")),
        str(sources / "locks" / "requirements.lock"),
    )


def _image(sources: Path, folder: Path) -> None:
    """The image as an archive that `docker load` takes."""
    engine = shutil.which("docker") or shutil.which("podman")
    if engine is None:
        sys.exit("release: neither docker nor podman is here; run without --image")
    _run(engine, "build", "-t", "spanwise:release", str(sources))
    _run(engine, "save", "-o", str(folder / "spanwise-image.tar"), "spanwise:release")


def _sums(folder: Path) -> None:
    """`sha256sum --check SHA256SUMS` holds."""
    lines = [
        f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n"
        for each in sorted(folder.iterdir())
    ]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def _run(*command: str) -> None:
    """What it says is shown only where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own tools
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        sys.exit(f"release: `{' '.join(command[:4])}` failed")


if __name__ == "__main__":
    main()
