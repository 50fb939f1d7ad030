"""Speed of the GPU judges in the exact shapes of the papers' models, with random weights."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from guardrail.core.types import Value
from judges.torch_model import TorchRunner

if TYPE_CHECKING:
    import torch

__all__ = ["GPUSpeed", "Shape", "measure_gpu", "roberta_large", "t5_xxl"]

MATMUL_SIZE = 8192
MATMUL_ROUNDS = 20
SINGLE_PAIRS = 64
"""Pairs for the one-at-a-time loop; its rate does not depend on how many there are."""

MEDIAN_TOKENS, SPREAD = 38.0, 0.33
"""Median and log-normal spread of a pair's length in tokens, from rows of VitaminC, SNLI and
MNLI in equal parts: half under 38 tokens, a tenth over 58, mean 40."""
SHORTEST, LONGEST = 12, 384

TOKEN_BUDGETS = {"roberta-large": 65_536, "T5-XXL, one decoder step": 16_384}


class GPUSpeed(Value):
    """Throughput of one model.

    Attributes:
        name: Shape of the model.
        device: The GPU.
        pairs: Pairs of the timed round.
        mean_tokens: Mean tokens of a pair, special ones included.
        pairs_per_s: In length-sorted batches under a token budget.
        single_pairs_per_s: One pair at a time, as the papers did.
        gain: The first over the second.
        tflops: Arithmetic on real tokens, padding not counted, 10^12 per second.
        matmul_tflops: Measured rate of a large bf16 matrix product on the same device.
        share: The first over the second.
    """

    name: str
    device: str
    pairs: int
    mean_tokens: float
    pairs_per_s: float
    single_pairs_per_s: float
    gain: float
    tflops: float
    matmul_tflops: float
    share: float


class Shape(Value):
    """A model to measure.

    Attributes:
        name: What it is the shape of.
        kind: Name of the transformers class.
        config: Name of its configuration class.
        sizes: Fields of the configuration.
        one_step: True for a T5 that needs a single decoder step.
    """

    name: str
    kind: str
    config: str
    sizes: dict[str, int | float | str | bool]
    one_step: bool = False


def roberta_large() -> Shape:
    """The shape of roberta-large as a classifier of three labels."""
    return Shape(
        name="roberta-large",
        kind="RobertaForSequenceClassification",
        config="RobertaConfig",
        sizes={
            "vocab_size": 50_265,
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
            "max_position_embeddings": 514,
            "type_vocab_size": 1,
            "num_labels": 3,
        },
    )


def t5_xxl() -> Shape:
    """The shape of T5 1.1 XXL, the base of AutoIS."""
    return Shape(
        name="T5-XXL, one decoder step",
        kind="T5ForConditionalGeneration",
        config="T5Config",
        sizes={
            "vocab_size": 32_128,
            "d_model": 4096,
            "d_kv": 64,
            "d_ff": 10_240,
            "num_layers": 24,
            "num_heads": 64,
            "feed_forward_proj": "gated-gelu",
            "tie_word_embeddings": False,
            "decoder_start_token_id": 0,
        },
        one_step=True,
    )


def measure_gpu(*, pairs: int) -> list[GPUSpeed]:
    """Measure roberta-large and T5-XXL on the GPU; empty where there is none."""
    import torch

    if not torch.cuda.is_available():
        return []
    results = []
    for shape in (roberta_large(), t5_xxl()):
        results.append(measure_shape(shape, device="cuda", pairs=pairs))
        torch.cuda.empty_cache()
    return results


def measure_shape(
    shape: Shape,
    *,
    device: str,
    pairs: int,
    matmul_size: int = MATMUL_SIZE,
) -> GPUSpeed:
    """Measure one shape with random weights in bfloat16.

    Args:
        shape: The model.
        device: Where it runs.
        pairs: Pairs of the timed round; token ids are random, lengths realistic.
        matmul_size: Rows and columns of the matrices of the reference product.
    """
    import torch

    model = _random_model(shape, device)
    outputs: Callable[[Any, dict[str, Any]], Any] = _first_step if shape.one_step else _logits
    budget = TOKEN_BUDGETS.get(shape.name, 4096)
    runner = TorchRunner(model=model, pad_id=1, token_budget=budget, outputs=outputs)
    sequences = _sequences(pairs, int(shape.sizes["vocab_size"]))
    runner.run(sequences[: max(1, pairs // 10)], name=shape.name)
    seconds = _timed(lambda: runner.run(sequences, name=shape.name), device)
    few = sequences[:SINGLE_PAIRS]
    single = _timed(lambda: [runner.run([ids], name=shape.name) for ids in few], device)
    rate = _matmul_rate(device, matmul_size)
    work = sum(_operations(model, shape, len(ids)) for ids in sequences) / seconds
    name = torch.cuda.get_device_name() if device.startswith("cuda") else device
    return GPUSpeed(
        name=shape.name,
        device=name,
        pairs=pairs,
        mean_tokens=sum(map(len, sequences)) / pairs,
        pairs_per_s=pairs / seconds,
        single_pairs_per_s=len(few) / single,
        gain=(pairs / seconds) / (len(few) / single),
        tflops=work / 1e12,
        matmul_tflops=rate / 1e12,
        share=work / rate,
    )


def _random_model(shape: Shape, device: str) -> Any:
    import torch
    import transformers

    config = getattr(transformers, shape.config)(**shape.sizes)
    with torch.device("meta"):
        model = getattr(transformers, shape.kind)._from_config(config, dtype=torch.bfloat16)
    model = model.to_empty(device=device)
    generator = torch.Generator(device).manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.02, generator=generator)
        for name, buffer in model.named_buffers():
            buffer.copy_(_buffer(name, buffer))
    model.tie_weights()
    return model.eval()


def _buffer(name: str, buffer: torch.Tensor) -> torch.Tensor:
    """What a freshly built model keeps in a buffer: position ids count, segment ids are zero."""
    import torch

    if name.endswith("position_ids"):
        return torch.arange(buffer.shape[-1], device=buffer.device).expand_as(buffer)
    return torch.zeros_like(buffer)


def _sequences(count: int, vocabulary: int) -> list[list[int]]:
    """Random token ids of realistic lengths, seeded; ids 0 to 3 are left to special tokens."""
    import math

    rng = random.Random(0)
    lengths = [
        min(LONGEST, max(SHORTEST, round(MEDIAN_TOKENS * math.exp(rng.gauss(0.0, SPREAD)))))
        for _ in range(count)
    ]
    return [[rng.randrange(4, vocabulary) for _ in range(length)] for length in lengths]


def _logits(model: Any, inputs: dict[str, Any]) -> Any:
    return model(**inputs).logits


def _first_step(model: Any, inputs: dict[str, Any]) -> Any:
    """Logits of two tokens in the first decoder step, as T5 checkers compare them."""
    import torch

    ids = inputs["input_ids"]
    start = torch.zeros((len(ids), 1), dtype=torch.long, device=ids.device)
    return model(**inputs, decoder_input_ids=start, use_cache=False).logits[:, 0, 4:6]


def _operations(model: Any, shape: Shape, tokens: int) -> float:
    """Multiplications and additions for one pair: linear layers and attention products."""
    per_token, per_pair = _linear_sizes(model)
    sizes = shape.sizes
    if shape.one_step:
        width, layers = int(sizes["d_kv"]) * int(sizes["num_heads"]), int(sizes["num_layers"])
    else:
        width, layers = int(sizes["hidden_size"]), int(sizes["num_hidden_layers"])
    attention = 4.0 * tokens * tokens * width * layers
    return 2.0 * (per_token * tokens + per_pair) + attention


def _linear_sizes(model: Any) -> tuple[int, int]:
    """Weights of linear layers that every token passes, and of those once per pair.

    Once per pair: the decoder, but for the keys and values it reads from the encoder, and heads.
    """
    import torch

    per_token = per_pair = 0
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.Linear):
            continue
        reads_encoder = name.endswith(("EncDecAttention.k", "EncDecAttention.v"))
        if not reads_encoder and name.startswith(("decoder", "lm_head", "classifier")):
            per_pair += module.weight.numel()
        else:
            per_token += module.weight.numel()
    return per_token, per_pair


def _matmul_rate(device: str, size: int) -> float:
    """Arithmetic per second of a large bf16 matrix product."""
    import torch

    left = torch.randn(size, size, device=device).to(torch.bfloat16)
    right = torch.randn(size, size, device=device).to(torch.bfloat16)

    def rounds() -> None:
        for _ in range(MATMUL_ROUNDS):
            left @ right

    rounds()
    return 2.0 * size**3 * MATMUL_ROUNDS / _timed(rounds, device)


def _timed(work: Callable[[], Sequence[Any] | Any], device: str) -> float:
    """Wall seconds, the device's queue drained before and after."""
    import torch

    if device.startswith("cuda"):
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - start
