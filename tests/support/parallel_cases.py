"""Forty cases with known answers: twenty prompts in two languages, where the longer answer is the better one."""

import steelyard as sy

TOPICS = (
    "rain roof umbrella", "train ticket platform", "bread yeast oven", "violin bow string", "harbour ship crane",
    "winter coat wool", "garden bee honey", "river bridge stone", "camera lens light", "market price apple",
    "forest owl night", "desert dune wind", "school bell lesson", "kitchen knife onion", "museum statue marble",
    "island palm beach", "mountain goat cliff", "library shelf novel", "hospital nurse bandage", "stadium goal whistle",
)  # fmt: skip
SIGNS = "雨伞车票面包琴弦港口外套蜜蜂石桥镜头苹果猫头沙丘课铃洋葱雕像棕榈山羊小说护士进球"


def parallel_cases():
    """Return the cases: answer ``a`` has 20 characters and beats ``b``, which has 5."""
    return sy.Cases([one(number, language) for number in range(20) for language in ("zh", "en")])


def one(number, language):
    texts = {"zh": f"{SIGNS[2 * number : 2 * number + 2]}是什么意思？", "en": f"Explain: {TOPICS[number]}."}
    return sy.Case(
        prompt=sy.Prompt(
            id=f"p{number + 1}", messages=(sy.Message(role="user", content=texts[language]),), language=language
        ),
        responses=(sy.Response(id="a", text="a" * 20), sy.Response(id="b", text="b" * 5)),
        judgments=(sy.Judgment(left="a", right="b", verdict="left", judge="ann", kind="human"),),
        ranking=(("a",), ("b",)),
    )
