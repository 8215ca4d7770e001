"""A base image made of this machine's own files, for where no registry of images can be reached.

It holds what the official slim image of Python holds, as far as our Dockerfile needs it: Debian's shell, coreutils,
passwd and libraries, and this Python in /usr/local with pip and without bytecode. It is no minimal copy of that image,
and another minor version of Python than the Dockerfile's would not do.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path

PACKAGES = (
    *("base-files", "base-passwd", "bash", "ca-certificates", "coreutils", "dash", "debianutils"),
    *("findutils", "grep", "hostname", "libc-bin", "login", "netbase", "openssl", "passwd", "sed"),
    *("libacl1", "libattr1", "libaudit1", "libbz2-1.0", "libc6", "libcap-ng0", "libcrypt1"),
    *("libdb5.3", "libexpat1", "libffi8", "libgcc-s1", "libgdbm6", "libgmp10", "liblzma5"),
    *("libncursesw6", "libnsl2", "libpam-modules", "libpam-runtime", "libpam0g", "libpcre2-8-0"),
    *("libreadline8", "libselinux1", "libsemanage2", "libsepol2", "libsqlite3-0", "libssl3"),
    *("libstdc++6", "libtinfo6", "libtirpc3", "libuuid1", "libzstd1", "tzdata", "zlib1g"),
)
"""Debian's. One that is not installed here is left out: the build says what it misses."""
UNNEEDED = ("/usr/share/doc/", "/usr/share/info/", "/usr/share/locale/", "/usr/share/man/")
ACCOUNTS = ("/etc/group", "/etc/gshadow", "/etc/login.defs", "/etc/passwd", "/etc/shadow")
LINKS = ("/bin", "/lib", "/lib64", "/sbin")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
FOLDERS = {"dev": 0o755, "proc": 0o755, "run": 0o755, "sys": 0o755, "tmp": 0o1777}
NOT_IN_THE_BASE = ("__pycache__", "/test/", "/tests/", "/idlelib/")


def write(path: Path) -> None:
    """The root file system as a tar file, for `docker import`."""
    with tarfile.open(path, "w") as archive:
        for each in sorted({*_installed(), *ACCOUNTS, *LINKS, CERTIFICATES}):
            archive.add(each, arcname=each.lstrip("/"), recursive=False)
        for name, mode in FOLDERS.items():
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            archive.addfile(folder)
        for part in ("bin", "lib"):
            here = Path(sys.base_prefix) / part
            archive.add(here, arcname=f"usr/local/{part}", filter=_of_python)


def write_command(path: Path, name: str) -> None:
    """One command of /bin and the libraries that it needs, as a tar file."""
    command = f"/bin/{name}"
    libraries = subprocess.run(["ldd", command], capture_output=True, text=True, check=True).stdout
    with tarfile.open(path, "w", dereference=True) as archive:
        for each in (command, *re.findall(r"(/\S+) \(0x", libraries)):
            archive.add(each, arcname=each.lstrip("/"))


def containerfile(imported: str) -> str:
    """The Dockerfile that makes the imported files an image with the environment of the official one.

    pip and uv trust the certificates of this machine, and pip keeps its settings: its registry may be a mirror.
    """
    settings = "".join(
        f"ENV {name}={json.dumps(value)}\n"
        for name, value in sorted(os.environ.items())
        if name.startswith(("PIP_", "UV_")) and name not in {"PIP_CERT", "PIP_FIND_LINKS"}
    )
    return (
        f"FROM {imported}\n{settings}"
        "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8\n"
        f"ENV PIP_CERT={CERTIFICATES} SSL_CERT_FILE={CERTIFICATES}\n"
        "RUN ldconfig\n"
    )


def _installed() -> set[str]:
    listed = subprocess.run(
        ["dpkg", "--listfiles", *PACKAGES], capture_output=True, text=True, timeout=60, check=False
    )
    found: set[str] = set()
    for line in listed.stdout.splitlines():
        path = Path(line)
        if line.startswith(UNNEEDED) or not os.path.lexists(path):
            continue
        if path.is_dir() and not path.is_symlink():
            continue
        # Debian's lists say /lib for what stands in /usr/lib: the parent is a link.
        found.add(str(_resolved(path.parent) / path.name))
    return found


@cache
def _resolved(folder: Path) -> Path:
    return folder.resolve()


def _of_python(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    name = f"{member.name}/"
    if any(each in name for each in NOT_IN_THE_BASE):
        return None
    _, inside, package = name.partition("/site-packages/")
    if inside and package and not package.startswith("pip"):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
