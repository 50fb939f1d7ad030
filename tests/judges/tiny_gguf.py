"""A tiny Llama with random weights: as a GGUF file, as a folder, and served by llama.cpp."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

WIDTH, INNER, LAYERS, HEADS, CONTEXT = 32, 64, 2, 2, 1024
START = "<|begin_of_text|>"


def write_gguf(path: Path) -> Path:
    """Write the model; its tokens are single bytes and two merges of two letters."""
    import gguf
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = list(bytes_to_unicode().values())
    merges = ["t h", "i n"]
    tokens = [*letters, *(merge.replace(" ", "") for merge in merges), START]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * (len(tokens) - 1) + [gguf.TokenType.CONTROL])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(len(tokens) - 1)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_add_bos_token(True)
    rng = np.random.default_rng(0)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, rng.normal(0, 0.3, shape).astype(np.float32))

    add("token_embd.weight", len(tokens), WIDTH)
    add("output.weight", len(tokens), WIDTH)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for layer in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", np.ones(WIDTH, np.float32))
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{part}.weight", WIDTH, WIDTH)
        add(f"blk.{layer}.ffn_gate.weight", INNER, WIDTH)
        add(f"blk.{layer}.ffn_up.weight", INNER, WIDTH)
        add(f"blk.{layer}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def as_folder(file: Path) -> Path:
    """The same model as a Hugging Face folder next to the GGUF file."""
    import transformers

    target = file.with_suffix("")
    source = {"gguf_file": file.name}
    if hasattr(transformers, "GgufConfig"):
        source["quantization_config"] = transformers.GgufConfig(dequantize=True)
    transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(
        target
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(file.parent, **source)
    model.save_pretrained(target)
    return target


@contextmanager
def llama_server(file: Path, *, parallel: int = 1) -> Iterator[str]:
    """The address of a llama.cpp server for a GGUF file; stops with the block."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx, params.n_parallel, params.port = CONTEXT * parallel, parallel, 0
    params.cpuparams.n_threads = 1
    params.verbosity = 0
    server = xllamacpp.Server(params)
    yield server.listening_address
    del server
