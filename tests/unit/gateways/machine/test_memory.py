"""The memory that is free, as Linux and control groups say it."""

import os

from kops.gateways.machine.memory import free_memory

GB = 1 << 30


def test_it_is_what_linux_says(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal:       16777216 kB\nMemFree:          1024 kB\nMemAvailable:    4194304 kB\n")
    assert free_memory(tmp_path, tmp_path / "none") == 4 * GB


def test_a_container_may_have_less(tmp_path):
    (tmp_path / "meminfo").write_text("MemAvailable:    4194304 kB\n")
    (tmp_path / "memory.current").write_text(f"{GB}\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory(tmp_path, tmp_path) == 4 * GB
    (tmp_path / "memory.max").write_text(f"{3 * GB}\n")
    assert free_memory(tmp_path, tmp_path) == 2 * GB
    older = tmp_path / "older" / "memory"
    older.mkdir(parents=True)
    (older / "memory.limit_in_bytes").write_text(f"{2 * GB}\n")
    (older / "memory.usage_in_bytes").write_text(f"{3 * GB}\n")
    assert free_memory(tmp_path, tmp_path / "older") == 0


def test_other_systems_are_thought_to_have_half_of_it_free(tmp_path):
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert free_memory(tmp_path, tmp_path) == whole // 2
