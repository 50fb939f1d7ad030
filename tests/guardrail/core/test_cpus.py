"""The processors of a container, in both versions of control groups."""

import os

import pytest

from guardrail.core.cpus import usable_cpus


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A root folder for files of the kernel, on a machine with 16 processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("files", "processors"),
    [
        # Version 2, as Docker and Kubernetes mount it: the container's group is the root.
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 16),
        # Version 2 without a namespace: a group above has the limit.
        (
            {
                "proc/self/cgroup": "0::/system.slice/guardrail.service\n",
                "sys/fs/cgroup/system.slice/guardrail.service/cpu.max": "max 100000\n",
                "sys/fs/cgroup/system.slice/cpu.max": "400000 100000\n",
            },
            4,
        ),
        # Version 1
        (
            {
                "proc/self/cgroup": "4:memory:/docker/a1\n3:cpu,cpuacct:/docker/a1\n",
                "sys/fs/cgroup/cpu,cpuacct/docker/a1/cpu.cfs_quota_us": "300000\n",
                "sys/fs/cgroup/cpu,cpuacct/docker/a1/cpu.cfs_period_us": "100000\n",
            },
            3,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/docker/a1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            1,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            16,
        ),
        # A quota above what the machine has, nonsense, and no control groups at all
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "9900000 100000\n"}, 16),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "much\n"}, 16),
        ({}, 16),
    ],
)
def test_the_quota_of_the_container_bounds_the_processors(machine, files, processors):
    assert usable_cpus(machine(files)) == processors


def test_this_machine_has_some():
    assert 1 <= usable_cpus() <= (os.cpu_count() or 1)
