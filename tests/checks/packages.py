"""What is installed belongs to exactly one of Debian's packages, and the symbols file is what the library exports.

usage: packages.py PREFIX [DEBIAN]    an installation below PREFIX; the tree's packaging/debian
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREFIX = pathlib.Path(sys.argv[1])
DEBIAN = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "packaging" / "debian"
# Not from CMake's install rules: pybuild installs it.
OTHERS = {"python3-gpud"}
# rules installs it where nvcc made it.
OPTIONAL = {"usr/lib/libgpud-cub.so": "gpud"}


def plain(path):
    """A path as the packages have it: Debian's folder of libraries, and /etc of an installation to /usr."""
    path = re.sub(r"^usr/lib/(\*|[a-z0-9_]+-linux-gnu[a-z0-9]*)/", "usr/lib/", path)
    return re.sub(r"^usr/etc/", "etc/", re.sub(r"^usr/share/doc/[^/]+/", "usr/share/doc/gpud/", path))


def installed():
    files = (path for path in PREFIX.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted({plain("usr/" + str(path.relative_to(PREFIX))) for path in files})


def patterns():
    """(package, pattern) of each line; a folder stands for all below it."""
    for path in sorted(DEBIAN.glob("*.install")) + [DEBIAN / "not-installed"]:
        package = path.stem
        if package in OTHERS:
            continue
        for line in path.read_text().splitlines():
            words = line.split()
            if words and not line.startswith("#"):
                yield package, plain(words[0])


def divided(files, lines):
    owners = {file: set() for file in files}
    for package, pattern in lines:
        found = [file for file in files if fnmatch.fnmatch(file, pattern) or fnmatch.fnmatch(file, pattern + "/*")]
        # fnmatch lets * match a slash, dh_install does not
        found = [file for file in found if file.startswith(pattern + "/") or file.count("/") == pattern.count("/")]
        if not found and not (pattern.startswith("usr/share/man/") and not any("/man/" in file for file in files)):
            yield f"{package}: {pattern} is not installed"
        for file in found:
            owners[file].add(package)
    for file, packages in owners.items():
        if file in OPTIONAL:
            packages.add(OPTIONAL[file])
        if len(packages) != 1:
            yield f"{file}: in {' and '.join(sorted(packages)) or 'no package and not in not-installed'}"


def symbols():
    """The library's exports against the symbols file, and its name against the package's."""
    (library,) = [path for path in PREFIX.rglob("libgpud.so")]
    said = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[2].split("@")[0] for line in said.splitlines()}
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    name, major = re.search(r"SONAME.*\[(lib\w+)\.so\.(\d+)\]", dynamic).groups()
    path = DEBIAN / f"{name}{major}.symbols"
    if not path.exists():
        yield f"{path.name}: not there, but the library is {name}.so.{major}"
        return
    listed = set(re.findall(r"^ (\w+)@", path.read_text(), re.MULTILINE))
    for symbol in sorted(exported - listed):
        yield f"{path.name}: {symbol} is missing"
    for symbol in sorted(listed - exported):
        yield f"{path.name}: {symbol} is not exported"


def versions():
    """All packagings are of the header's version."""
    header = (ROOT / "client" / "include" / "gpud" / "gpud.h").read_text()
    version = ".".join(re.findall(r"^#define GPUD_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header, re.MULTILINE))
    spec = (ROOT / "packaging" / "rpm" / "gpud.spec").read_text()
    for name, found in (("changelog", re.match(r"gpud \(([^)]*)-", (DEBIAN / "changelog").read_text())),
                        ("gpud.spec", re.search(r"^Version:\s*(\S+)", spec, re.MULTILINE))):
        if not found or found.group(1) != version:
            yield f"{name}: not of version {version}"


wrong = list(divided(installed(), list(patterns()))) + list(symbols()) + list(versions())
for line in wrong:
    print(f"packages: {line}", file=sys.stderr)
sys.exit(1 if wrong else 0)
