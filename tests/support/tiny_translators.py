"""Tiny translators with the interface of real ones: models with random weights, and a program in capital letters."""

import io
import json
import sys

import torch
from transformers import (
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MarianTokenizer,
    NllbTokenizer,
)

from steelyard.networks.loading import quiet

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
SIZE = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2,
}  # fmt: skip
LANGUAGES = ("eng_Latn", "deu_Latn", "zho_Hans", "zho_Hant", "arb_Arab")


def save_nllb(folder, *, positions=64, seed=0, spread=0.02):
    """Write a model with the tokenizer and the language codes of NLLB, of a vocabulary of single letters.

    With a larger ``spread`` of its weights its words depend on what it reads.
    """
    letters = ["▁", *"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,?!'-"]
    vocabulary = {token: place for place, token in enumerate((*SPECIAL[:4], *letters, *LANGUAGES, SPECIAL[4]))}
    tokenizer = NllbTokenizer(
        vocab=vocabulary,
        merges=[],
        src_lang="eng_Latn",
        tgt_lang="deu_Latn",
        additional_special_tokens=list(LANGUAGES),
        model_max_length=positions,
    )
    torch.manual_seed(seed)
    config = M2M100Config(
        vocab_size=len(tokenizer),
        max_position_embeddings=positions,
        **SIZE,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        dropout=0.0,
        init_std=spread,
    )
    with quiet():
        M2M100ForConditionalGeneration(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return str(folder)


SENTENCES = ("the house is small", "where is the train", "abc def 12 3!", "who asks a long text so")


def save_opus_mt(folder, *, positions=64, seed=0):
    """Write a model as those of opus-mt with several targets, whose names stand before the text."""
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    folder.mkdir()
    written = io.BytesIO()
    settings = {"vocab_size": 30, "hard_vocab_limit": False, "minloglevel": 2}
    SentencePieceTrainer.train(sentence_iterator=iter(SENTENCES * 20), model_writer=written, **settings)
    processor = SentencePieceProcessor(model_proto=written.getvalue())
    pieces = [processor.id_to_piece(place) for place in range(3, processor.get_piece_size())]
    names = ["</s>", "<unk>", *pieces, ">>deu<<", ">>fra<<", "<pad>"]
    files = [folder / name for name in ("source.spm", "target.spm", "vocab.json")]
    files[0].write_bytes(written.getvalue())
    files[1].write_bytes(written.getvalue())
    files[2].write_text(json.dumps({name: place for place, name in enumerate(names)}))
    torch.manual_seed(seed)
    config = MarianConfig(
        vocab_size=len(names),
        max_position_embeddings=positions,
        **SIZE,
        pad_token_id=len(names) - 1,
        decoder_start_token_id=len(names) - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
        dropout=0.0,
        init_std=0.7,
    )
    with quiet():
        model = MarianMTModel(config)
        model.generation_config.bad_words_ids = [[len(names) - 1]]
        model.save_pretrained(folder)
        tokenizer = MarianTokenizer(*map(str, files), source_lang="eng", target_lang="mul", model_max_length=positions)
        tokenizer.save_pretrained(folder)
    return str(folder)


def teach(folder, texts, steps=300):
    """Train the model of `save_opus_mt` to write the words of texts in the reverse order, which takes some seconds."""
    tokenizer, model = MarianTokenizer.from_pretrained(folder), MarianMTModel.from_pretrained(folder)
    given = tokenizer([f">>deu<< {text}" for text in texts], return_tensors="pt", padding=True)
    written = tokenizer(
        [" ".join(reversed(text.split())) for text in texts], return_tensors="pt", padding=True
    ).input_ids
    labels = written.masked_fill(written == tokenizer.pad_token_id, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    torch.manual_seed(0)
    for _ in range(steps):
        model(**given, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    with quiet():
        model.save_pretrained(folder)


PROGRAM = """\
#!{python}
import sys
if sys.argv[1] == "-l":
    print("  eng-deu  eng-deu_AT  deu-eng  broken  spa-cat-eng")
elif sys.argv[1] == "-V":
    print("Apertium 0.0")
else:
    text = sys.stdin.buffer.read().decode()
    {log}
    if "fail" in text:
        sys.exit("no such word")
    sys.stdout.buffer.write(f"{sys.argv[2]} {text.upper()}".encode())
"""


def save_program(path, *, log=None):
    """Write a program that answers as Apertium does, with the name of the pair and the text in capital letters.

    ``log`` gets a line for each text.
    """
    logging = "" if log is None else f"open({str(log)!r}, 'a').write(text.replace(chr(10), ' ') + chr(10))"
    path.write_text(PROGRAM.replace("{python}", sys.executable).replace("{log}", logging), encoding="utf-8")
    path.chmod(0o755)
    return str(path)
