"""The embedded path needs no network: it runs with every way out cut off, and tries none."""

import shutil
import subprocess
import sys

import pytest

from tests.packaging.wheels import ROOT

WAYS = {
    "watched": [],
    "no interface": ["unshare", "--net"],
    "no interface, as any user": ["unshare", "--map-root-user", "--net"],
}
"""How the network is taken away; the kernel's ways hold for compiled code as well."""


@pytest.mark.parametrize("way", WAYS)
def test_the_embedded_path_runs_without_a_network(way, tmp_path):
    if WAYS[way] and not allowed(WAYS[way]):
        pytest.skip(f"{' '.join(WAYS[way])} is not allowed here")
    command = [*WAYS[way], sys.executable, "-m", "tests.packaging.embedded_path"]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "judged without a network"


def run(command, folder):
    return subprocess.run(
        command,
        capture_output=True, text=True, check=False, cwd=folder,
        env={"PYTHONPATH": str(ROOT), "HOME": str(folder), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip


def allowed(before):
    if shutil.which(before[0]) is None:
        return False
    return subprocess.run([*before, "true"], capture_output=True, check=False).returncode == 0
