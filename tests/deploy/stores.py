"""PostgreSQL and Redis for a test, each on a free port of loopback, and stopped with it."""
import contextlib
import os
import pathlib
import pwd
import shutil
import socket
import subprocess

import servers

NO_FSYNC = "fsync=off"  # the machine itself does not die in a test


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def program(name):
    """Debian has PostgreSQL's programs outside of the search path."""
    found = shutil.which(name)
    elsewhere = sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if not found and not elsewhere:
        raise RuntimeError(f"there is no '{name}': scripts/packages.txt has its package")
    return found or str(elsewhere[-1])


def other_user():
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam("postgres")
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--pdeathsig=KILL"]


@contextlib.contextmanager
def running(command, log, environment=None):
    """A server that says nothing on standard output; it is asked to stop at the end."""
    with log.open("w") as output, subprocess.Popen(
        command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(servers.DEADLINE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def listens(process, log, port):
    """Waits until something listens there."""

    def connects():
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} did not start:\n{log.read_text()}")
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    servers.wait_until(connects)


@contextlib.contextmanager
def postgres(folder, user, password, database, initdb_arguments=()):
    """Yields the port of a server that wants the password."""
    home = folder / "postgres"
    home.mkdir()
    secret = home / "password"
    secret.write_text(password)
    apart = other_user()
    if apart:
        owner = pwd.getpwnam("postgres")
        folder.chmod(0o755)
        for path in (home, secret):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    subprocess.run(
        [*apart, program("initdb"), f"--pgdata={home}/data", "--auth=scram-sha-256", f"--username={user}",
         f"--pwfile={secret}", "--no-sync", *initdb_arguments],
        check=True, capture_output=True, cwd=home,
    )
    port = free_port()
    log = folder / "postgres.log"
    command = [*apart, program("postgres"), "-D", f"{home}/data", "-p", str(port), "-k", str(home),
               "-c", "listen_addresses=127.0.0.1", "-c", NO_FSYNC]
    environment = {"PGPASSWORD": password}
    with running(command, log) as process:
        ask = [program("psql"), "-h", "127.0.0.1", "-p", str(port), "-U", user, "-d", "postgres", "-qAtc"]
        listens(process, log, port)
        servers.wait_until(lambda: subprocess.run(
            [*ask, "SELECT 1"], env={**os.environ, **environment}, capture_output=True).returncode == 0)
        subprocess.run([*ask, f"CREATE DATABASE {database}"], env={**os.environ, **environment}, check=True)
        yield port


@contextlib.contextmanager
def redis(folder, command, environment):
    """`command` has {port} where it names the port. Yields the port."""
    home = folder / "redis"
    home.mkdir()
    port = free_port()
    log = folder / "redis.log"
    with running([word.replace("{port}", str(port)).replace("{dir}", str(home)) for word in command], log,
                 environment) as process:
        listens(process, log, port)
        yield port
