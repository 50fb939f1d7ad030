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


def test_one_flipped_bit_is_reported(judge):
    path = judge / "model.onnx"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(JudgeError, match=r"model\.onnx is not the file"):
        OnnxJudge(judge).judge([Pair("a", "b")])


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


def test_a_description_that_is_no_text_is_an_error(judge):
    (judge / "judge.json").write_bytes(b"\xff\xfe")
    write_sums(judge)
    with pytest.raises(JudgeError, match="no description"):
        OnnxJudge(judge).judge([Pair("a", "b")])


def test_a_judge_without_checksums_does_not_load(judge):
    (judge / SUMS).unlink()
    with pytest.raises(JudgeError, match=SUMS):
        OnnxJudge(judge).judge([Pair("a", "b")])


def test_a_file_that_the_checksums_leave_out_does_not_load(judge):
    sums = (judge / SUMS).read_text().splitlines(keepends=True)
    (judge / SUMS).write_text("".join(line for line in sums if "model.onnx" not in line))
    with pytest.raises(JudgeError, match=r"model\.onnx"):
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
