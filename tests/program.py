"""Programs as a user starts them, without the wait for what they import.

Each runs in a process of its own, forked from one that has the libraries, the English pipeline and
the shipped judge loaded. What shows in what a program imports is not tested this way.
"""

import atexit
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Done(NamedTuple):
    """What came of a program."""

    returncode: int
    stdout: str
    stderr: str


def python(
    *arguments: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None, input: str = ""
) -> Done:
    """Run ``python -m MODULE …`` or ``python FILE …`` and wait for its end.

    Args:
        arguments: Of ``python``.
        cwd: The folder that it runs in.
        env: Its environment; None for the tests' own.
        input: What it reads.
    """
    with TemporaryDirectory() as folder:
        names = [Path(folder, name) for name in ("in", "out", "err")]
        names[0].write_text(input, "utf-8")
        code = _ask(arguments, cwd, env, names)
        return Done(code, *(name.read_text("utf-8", "replace") for name in names[1:]))


def on_terminal(
    *arguments: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> str:
    """What ``python …`` shows where both its outputs are a terminal."""
    import pty

    ours, theirs = pty.openpty()
    seen = []

    def read() -> None:
        with suppress(OSError):  # the end of a terminal is an error
            while piece := os.read(ours, 65536):
                seen.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    name = Path(os.ttyname(theirs))
    _ask(arguments, cwd, env, [Path(os.devnull), name, name])
    os.close(theirs)
    reader.join()
    os.close(ours)
    return b"".join(seen).decode()


def _ask(
    arguments: tuple[str | Path, ...], cwd: Path, env: Mapping[str, str] | None, names: list[Path]
) -> int:
    """Have a program run with files for its input and outputs; its exit status."""
    request = {
        "arguments": list(map(str, arguments)),
        "cwd": str(cwd),
        "env": dict(os.environ if env is None else env),
        "names": list(map(str, names)),
    }
    mother = _mother()
    assert mother.stdin is not None
    assert mother.stdout is not None
    try:
        mother.stdin.write(json.dumps(request) + "\n")
        mother.stdin.flush()
        return int(mother.stdout.readline())
    except BaseException:  # a test that ran out of time: what hangs ends with all that it started
        os.killpg(mother.pid, signal.SIGKILL)
        _mother.cache_clear()
        raise


@cache
def _mother() -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", "from tests.program import serve; serve()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment,
        start_new_session=True,
    )  # fmt: skip


def serve() -> None:
    """Load what most programs need, then fork a child for each that is asked for."""
    from guardrail import Guardrail
    from guardrail.cli import app

    assert app
    with Guardrail() as guard:
        guard.check("Who was Ada Lovelace?", "Ada Lovelace was born in London.")
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_run(**request))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, flush=True)


def _run(arguments: list[str], cwd: str, env: dict[str, str], names: list[str]) -> int:
    """Be the program, in the child."""
    for number, name in enumerate(names):
        flags = os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY
        os.dup2(os.open(name, flags), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    code = 1
    try:
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            sys.path[0] = cwd
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            sys.path[0] = str(Path(arguments[0]).parent)
            runpy.run_path(arguments[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    return code
