"""The wheel names the hash of each of its files, and is the same to the byte when built again."""

import base64
import csv
from zipfile import ZipFile

import pytest

from judges.session import SUMS
from tests.packaging.wheels import ROOT, built

EPOCH = "1760000000"
"""Seconds; any time will do, as long as both builds name it."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    return built(folder / "source", folder / "wheel", SOURCE_DATE_EPOCH=EPOCH)


def recorded(wheel):
    """The hash of each file that the wheel's record names, in hexadecimal digits."""
    with ZipFile(wheel) as packed:
        (name,) = [item for item in packed.namelist() if item.endswith(".dist-info/RECORD")]
        rows = list(csv.reader(packed.read(name).decode("utf-8").splitlines()))
        files = {item for item in packed.namelist() if not item.endswith(("/", "/RECORD"))}
    found = {
        path: base64.urlsafe_b64decode(digest.removeprefix("sha256=") + "=").hex()
        for path, digest, _ in rows
        if digest
    }
    assert set(found) == files
    return found


def test_the_record_holds_the_hash_of_every_weight(wheel):
    found = recorded(wheel)
    sums = sorted((ROOT / "judges" / "weights").rglob(SUMS))
    assert sums
    for path in sums:
        folder = path.parent.relative_to(ROOT).as_posix()
        assert f"{folder}/{SUMS}" in found
        for line in path.read_text("ascii").splitlines():
            wanted, _, name = line.partition("  ")
            assert found[f"{folder}/{name}"] == wanted, name


def test_a_second_build_is_the_same_to_the_byte(wheel, tmp_path):
    again = built(
        tmp_path / "elsewhere" / "source", tmp_path / "wheel", SOURCE_DATE_EPOCH=EPOCH, TZ="UTC+5",
        PYTHONHASHSEED="7",
    )  # fmt: skip
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()
