"""A model whose files were damaged or changed does not load."""

import httpx
import pytest

from chains.gateway import GatewaySettings, create_app
from guardrail import GuardrailConfig
from guardrail.core.errors import JudgeError
from judges.base import Pair
from judges.encoder import SHIPPED_ENCODER
from judges.onnx import SECOND, SHIPPED, OnnxJudge
from judges.session import SUMS, check_sums, write_sums
from tests.judges.tiny import write_judge


@pytest.mark.parametrize("folder", [SHIPPED, SHIPPED / SECOND, SHIPPED_ENCODER])
def test_every_shipped_file_has_a_checksum_that_holds(folder):
    check_sums(folder)
    named = {line.partition("  ")[2] for line in (folder / SUMS).read_text().splitlines()}
    files = {item.name for item in folder.iterdir() if item.is_file()}
    assert named == files - {SUMS, "README.md"}


@pytest.fixture
def judge(tmp_path):
    return write_judge(tmp_path / "judge")


@pytest.mark.parametrize("name", ["judge.json", "tokenizer.json"])
def test_a_changed_file_does_not_load_until_its_checksum_is_written(judge, name):
    (judge / name).write_bytes((judge / name).read_bytes() + b" ")
    with pytest.raises(JudgeError, match=name):
        OnnxJudge(judge).judge([Pair("a", "b")])
    write_sums(judge)
    check_sums(judge)
    (judge / name).unlink()
    with pytest.raises(JudgeError, match="cannot be read"):
        check_sums(judge)


def flip_one_bit(folder):
    content = bytearray((folder / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.onnx").write_bytes(content)


def describe_in_bytes(folder):
    (folder / "judge.json").write_bytes(b"\xff\xfe")
    write_sums(folder)


def remove_sums(folder):
    (folder / SUMS).unlink()


def leave_out_the_model(folder):
    sums = (folder / SUMS).read_text().splitlines(keepends=True)
    (folder / SUMS).write_text("".join(line for line in sums if "model.onnx" not in line))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (flip_one_bit, r"model\.onnx is not the file"),
        (describe_in_bytes, "no description"),
        (remove_sums, SUMS),
        (leave_out_the_model, r"model\.onnx"),
    ],
)
def test_a_damaged_folder_does_not_load(judge, damage, message):
    damage(judge)
    with pytest.raises(JudgeError, match=message):
        OnnxJudge(judge).judge([Pair("a", "b")])


async def test_a_gateway_whose_judge_has_no_checksums_is_not_ready(judge):
    (judge / SUMS).unlink()
    settings = GuardrailConfig(judge=f"onnx:{judge}", graph={"location": "none"})
    app = create_app(settings, GatewaySettings())
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client,
    ):
        await app.state.gateway.loaded()
        said = await client.get("/readyz")
    assert said.status_code == 503
    assert SUMS in said.json()["status"]
