"""Small tokenizers with the structure of published families: model, normaliser, and the flags of added tokens."""

import functools
from typing import NamedTuple

LINES = [
    "user assistant system What is it? The answer is here. <|im_end|> [INST] <s> start_of_turn",
    "你好，世界。杆秤是什么？ 用户 助手",
    "שלום مرحبا नमस्ते こんにちは café über ｆｕｌｌ",
    "def f(x):\n    return x\n\n\n  <b>bold</b>",
]
CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
LLAMA3 = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content | trim }}<|eot_id|>{% endfor %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    "{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
)
DEEPSEEK = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}<｜Assistant｜>{{ m.content }}{{ eos_token }}"
    "{% else %}<｜User｜>{{ m.content }}{% endif %}{% endfor %}"
)
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %} {{ m.content }}{{ eos_token }}"
    "{% else %}[INST] {{ m.content }} [/INST]{% endif %}{% endfor %}"
)
CHATGLM = "[gMASK]sop{% for m in messages %}<|{{ m.role }}|>\n {{ m.content }}{% endfor %}"
BAICHUAN = (
    "{% for m in messages %}{{ '<reserved_107>' if m.role == 'assistant' else '<reserved_106>' }}"
    "{{ m.content }}{% endfor %}"
)


class Shape(NamedTuple):
    """``special`` and ``other`` are added tokens by their flag; ``words`` stand in the vocabulary as ordinary text."""

    model: str
    template: str
    special: tuple[str, ...]
    other: tuple[str, ...] = ()
    normalizer: str | None = None
    is_normalized: bool = False
    bos: str | None = None
    eos: str | None = None
    adds_bos: bool = False
    words: tuple[str, ...] = ()


SHAPES = {
    "qwen": Shape(
        "bytes", CHATML, ("<|endoftext|>", "<|im_start|>", "<|im_end|>"), ("<tool_call>", "<think>"), "nfc",
        eos="<|im_end|>",
    ),
    "llama3": Shape(
        "bytes", LLAMA3, ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        bos="<|begin_of_text|>", eos="<|eot_id|>", adds_bos=True,
    ),
    "gemma": Shape(
        "fallback", GEMMA, ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"), ("\n\n", "\n\n\n"), "spaces",
        bos="<bos>", eos="<eos>", adds_bos=True,
    ),
    "deepseek": Shape(
        "bytes", DEEPSEEK, ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
        ("<｜User｜>", "<｜Assistant｜>", "<think>"), bos="<｜begin▁of▁sentence｜>", eos="<｜end▁of▁sentence｜>",
        adds_bos=True,
    ),
    "mistral": Shape(
        "fallback", MISTRAL, ("<s>", "</s>", "[INST]", "[/INST]"), (), "prefix", bos="<s>", eos="</s>", adds_bos=True
    ),
    "chatglm": Shape(
        "unigram", CHATGLM, ("[gMASK]", "sop"), ("<|user|>", "<|assistant|>", "<|system|>"), "nfkc", is_normalized=True
    ),
    "internlm": Shape(
        "fallback", CHATML, ("<s>", "</s>", "<|im_start|>", "<|im_end|>"), ("<|plugin|>",), "prefix", bos="<s>",
        eos="</s>",
    ),
    "yi": Shape("fallback", CHATML, ("<|endoftext|>",), ("<|im_start|>", "<|im_end|>"), "spaces", is_normalized=True),
    "baichuan": Shape("unigram", BAICHUAN, ("<s>", "</s>"), ("<reserved_106>", "<reserved_107>"), "nfkc"),
    "stripped": Shape(
        "unigram", CHATGLM, ("[gMASK]", "sop"), ("<|user|>", "<|assistant|>", "<|system|>"), "accents",
        is_normalized=True,
    ),
}  # fmt: skip


def added(shape):
    from transformers import AddedToken

    own = [(name, True) for name in shape.special] + [(name, False) for name in shape.other]
    return [AddedToken(name, special=flag, normalized=shape.is_normalized and not flag) for name, flag in own]


@functools.cache
def published(name):
    """Return the family's tokenizer, with its template."""
    from tokenizers import decoders, normalizers, pre_tokenizers
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    shape = SHAPES[name]
    own = _trained(shape)
    own.normalizer = {
        "nfc": normalizers.NFC(),
        "nfkc": normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(" ", "▁")]),
        "accents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Replace(" ", "▁")]),
        "spaces": normalizers.Replace(" ", "▁"),
        "prefix": normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        None: None,
    }[shape.normalizer]
    if shape.model == "bytes":
        own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        own.decoder = decoders.ByteLevel()
    else:
        spaces, fallback = decoders.Replace("▁", " "), decoders.ByteFallback()
        own.decoder = decoders.Sequence([spaces, fallback, decoders.Fuse()])
    own.add_special_tokens([one for one in added(shape) if one.special])
    own.add_tokens([one for one in added(shape) if not one.special])
    if shape.adds_bos:
        number = own.token_to_id(shape.bos)
        own.post_processor = TemplateProcessing(single=[shape.bos, "$A"], special_tokens=[(shape.bos, number)])
    made = PreTrainedTokenizerFast(tokenizer_object=own, bos_token=shape.bos, eos_token=shape.eos)
    made.chat_template = shape.template
    return made


def _trained(shape):
    """Train a tokenizer without normaliser or added tokens; unless byte-level, its vocabulary has the marks."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    alphabet = sorted({sign for line in LINES for sign in line.replace(" ", "▁")} | set("<|>[]_/｜▁"))
    marks = [*shape.special, *shape.other]
    if shape.model == "bytes":
        own = Tokenizer(models.BPE())
        own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        )
        own.train_from_iterator(LINES, trainer)
        return own
    bytes_ = [f"<0x{number:02X}>" for number in range(256)]
    pieces = ["<unk>", *marks, *bytes_, *alphabet, "an", "▁t", "is", "▁is", "us", "er", "user"]
    pieces = list(dict.fromkeys(pieces))
    if shape.model == "fallback":
        numbers = {piece: number for number, piece in enumerate(pieces)}
        merges = [("a", "n"), ("▁", "t"), ("i", "s"), ("▁", "is"), ("u", "s"), ("e", "r"), ("us", "er")]
        return Tokenizer(models.BPE(vocab=numbers, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    # As SentencePiece writes control and user-defined pieces: with a score of 0, the best there is.
    scores = [(piece, 0.0 if piece in marks or piece == "<unk>" else -2.0 - len(piece) / 10) for piece in pieces]
    return Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=True))
