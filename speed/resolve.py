"""Conflict resolving: our whole-batch masks against graph libraries one prompt at a time, and from file to file.

Run: python speed/resolve.py [files]   (writes speed/results/resolve.json; with "files" anew only its part of files)
rustworkx, orjson and polars are measured where they are installed.
"""

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import time
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import msgspec
import networkx
import numpy as np

from steelyard.core.numerics import generator
from steelyard.core.types import Case, Judgment, Message, Prompt, Response
from steelyard.io.cases import write_cases
from steelyard.ranking.judgment_table import Edges
from steelyard.ranking.tiers import tiers_of
from steelyard.ranking.tiers_numba import compiled_tiers
from steelyard.stages.resolve import Config, resolve

RESULTS = Path(__file__).parent / "results" / "resolve.json"
NUM_FILE_PROMPTS, NUM_ROUNDS = 30_000, 3
TEXT = (
    "杆秤是一种古老的衡器，用提纽、秤杆和秤砣称量物品。The beam hangs from a cord, and the weight slides along it. "
    * 60
)


def tournament(num_prompts, num_responses, noise):
    """Every pair judged once, by quality and noise (infinite noise: at random), as flat edge arrays."""
    random = generator(0, "tournament", num_responses, str(noise))
    first, second = np.triu_indices(num_responses, 1)
    quality = random.normal(size=(num_prompts, num_responses))
    luck = random.normal(size=(num_prompts, len(first)))
    wins = luck > 0 if noise is None else quality[:, first] + noise * luck > quality[:, second]
    graph = np.repeat(np.arange(num_prompts, dtype=np.int32), len(first))
    first, second = first.astype(np.uint8), second.astype(np.uint8)
    return Edges(graph, np.where(wins, first, second).ravel(), np.where(wins, second, first).ravel())


def by_networkx(edges, num_responses):
    condensed = networkx.condensation(networkx.DiGraph(edges))
    tiers = [-1] * num_responses
    for tier, nodes in enumerate(networkx.topological_generations(condensed)):
        for node in nodes:
            for response in condensed.nodes[node]["members"]:
                tiers[response] = tier
    return tiers


def by_rustworkx(edges, num_responses):
    import rustworkx

    graph = rustworkx.PyDiGraph()
    graph.add_nodes_from(range(num_responses))
    graph.add_edges_from_no_data(edges)
    condensed = rustworkx.condensation(graph)
    tiers = [-1] * num_responses
    for tier, nodes in enumerate(rustworkx.topological_generations(condensed)):
        for node in nodes:
            for response in condensed[node]:
                tiers[response] = tier
    return tiers


def by_plain_python(edges, num_responses):
    """The same algorithm as ours, one prompt at a time on Python integers."""
    above = [0] * num_responses
    for better, worse in edges:
        above[worse] |= 1 << better
    for middle in range(num_responses):
        for response in range(num_responses):
            if above[response] >> middle & 1:
                above[response] |= above[middle]
    strictly = [
        sum(1 << other for other in range(num_responses) if above[own] >> other & 1 and not above[other] >> own & 1)
        for own in range(num_responses)
    ]
    tiers, remaining = [0] * num_responses, (1 << num_responses) - 1
    while remaining:
        beaten = [own for own in range(num_responses) if strictly[own] & remaining]
        for own in beaten:
            tiers[own] += 1
        remaining = sum(1 << own for own in beaten)
    return tiers


def cpu_seconds(function, repeats):
    """The last result, and the least CPU seconds of this thread over some runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.thread_time()
        result = function()
        best = min(best, time.thread_time() - start)
    return result, best


def measure_graphs(num_responses, noise, num_prompts, num_peer_prompts):
    edges = tournament(num_prompts, num_responses, noise)
    sizes = np.full(num_prompts, num_responses)
    ours, seconds = cpu_seconds(lambda: tiers_of(edges, sizes), 5)
    rate = {"steelyard": num_prompts / seconds}
    if find_spec("numba"):
        compiled, seconds = cpu_seconds(lambda: compiled_tiers(edges, num_prompts, num_responses, tiers_of), 5)
        assert (compiled == ours).all(), "the compiled loops disagree"
        rate["steelyard, compiled"] = num_prompts / seconds
    each = num_responses * (num_responses - 1) // 2
    pairs = np.stack([edges.better, edges.worse], 1).reshape(num_prompts, each, 2)[:num_peer_prompts].tolist()
    lists = [[tuple(pair) for pair in prompt] for prompt in pairs]
    peers = {"networkx": by_networkx, "plain python": by_plain_python}
    if find_spec("rustworkx"):
        peers["rustworkx"] = by_rustworkx
    for name, peer in peers.items():
        found, seconds = cpu_seconds(lambda peer=peer: [peer(one, num_responses) for one in lists], 2)
        assert found == ours[:num_peer_prompts].tolist(), f"{name} disagrees"
        rate[name] = num_peer_prompts / seconds
    return {
        "num_responses": num_responses,
        "num_edges": each,
        "tournament": "random" if noise is None else f"noise {noise}",
        "num_prompts": num_prompts,
        "prompts_a_second_a_core": {name: round(value) for name, value in rate.items()},
        "times_faster": {
            own: {name: round(rate[own] / rate[name], 1) for name in peers} for own in rate if own not in peers
        },
    }


def made_up_cases(num_cases):
    """Five responses; five triples that cover all ten pairs, each judged by one of 29 annotators: 15 verdicts."""
    random = generator(0, "cases")
    for number in range(num_cases):
        start = int(random.integers(0, 60))
        quality = random.normal(size=5)
        judgments = []
        for triple in range(5):
            shown = [int(one) for one in random.permutation([triple, (triple + 1) % 5, (triple + 2) % 5])]
            for left, right in ((0, 1), (0, 2), (1, 2)):
                better, worse = shown[left], shown[right]
                difference = quality[better] - quality[worse] + random.normal() * 0.7
                verdict = "tie" if abs(difference) < 0.2 else "left" if difference > 0 else "right"
                judgments.append(
                    Judgment(
                        left=f"r{better}",
                        right=f"r{worse}",
                        verdict=verdict,
                        judge=f"annotator {(number + triple) % 29}",
                        kind="human",
                        task=f"p{number}-{triple}",
                        shown=tuple(f"r{one}" for one in shown),
                    )
                )
        yield Case(
            prompt=Prompt(
                id=f"p{number}",
                messages=(Message(role="user", content=TEXT[start : start + 180]),),
                language="zh",
                category=(f"category {number % 8}",),
            ),
            responses=tuple(Response(id=f"r{one}", text=TEXT[start + one : start + one + 580]) for one in range(5)),
            judgments=tuple(judgments),
        )


def plain_script(source, target, limit):
    """Prompts a second of what one would write without us: json, networkx, a prompt at a time."""
    start = time.perf_counter()
    with source.open(encoding="utf-8") as lines, target.open("w", encoding="utf-8") as out:
        for number, line in enumerate(lines):
            if number == limit:
                break
            case = json.loads(line)
            edges = set()
            for judgment in case["judgments"]:
                if judgment["verdict"] in ("left", "tie"):
                    edges.add((judgment["left"], judgment["right"]))
                if judgment["verdict"] in ("right", "tie"):
                    edges.add((judgment["right"], judgment["left"]))
            condensed = networkx.condensation(networkx.DiGraph(edges))
            case["ranking"] = [
                [name for node in nodes for name in condensed.nodes[node]["members"]]
                for nodes in networkx.topological_generations(condensed)
            ]
            out.write(json.dumps(case, ensure_ascii=False) + "\n")
    return limit / (time.perf_counter() - start)


def processor_seconds():
    """Of this process and of the workers that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def through_msgspec(source, target):
    """The fastest reader and writer of our record alone: every line decoded into its type and encoded again."""
    decode, encode = msgspec.json.Decoder(Case).decode, msgspec.json.Encoder().encode
    with source.open("rb") as lines, target.open("wb") as out:
        for line in lines:
            out.write(encode(decode(line)) + b"\n")


def through_orjson(source, target):
    import orjson

    with source.open("rb") as lines, target.open("wb") as out:
        for line in lines:
            out.write(orjson.dumps(orjson.loads(line)) + b"\n")


def through_polars(source, target):
    import polars

    polars.read_ndjson(source).write_ndjson(target)


def measure_files(folder):
    """Processor seconds of one process, least and median; the sides take turns, so that load slows all of them."""
    source = folder / "cases.jsonl"
    write_cases(source, made_up_cases(NUM_FILE_PROMPTS))
    target, turns = folder / "copy.jsonl", count()

    def resolved(config, workers):
        resolve(source, folder / f"out-{next(turns)}", config, workers=workers)

    sides = {
        "msgspec decode and encode": lambda: through_msgspec(source, target),
        "resolve, quality=false": lambda: resolved(Config(quality=False), 1),
        "resolve": lambda: resolved(Config(), 1),
        "resolve, two processes": lambda: resolved(Config(), 2),
    }
    for name, peer in (("orjson", through_orjson), ("polars", through_polars)):
        if find_spec(name):
            sides[name] = lambda peer=peer: peer(source, target)
    seconds, walls = {name: [] for name in sides}, {name: [] for name in sides}
    for _ in range(NUM_ROUNDS):
        for name, side in sides.items():
            start, before = time.perf_counter(), processor_seconds()
            side()
            seconds[name].append(processor_seconds() - before)
            walls[name].append(time.perf_counter() - start)
    least = {name: min(own) for name, own in seconds.items()}
    middle = {name: sorted(own)[len(own) // 2] for name, own in seconds.items()}
    fastest = min(least[name] for name in least if "resolve" not in name)
    plain = plain_script(source, folder / "plain.jsonl", 2000)
    return {
        "num_prompts": NUM_FILE_PROMPTS,
        "bytes_a_prompt": round(source.stat().st_size / NUM_FILE_PROMPTS),
        "judgments_a_prompt": 15,
        "processor_microseconds_a_prompt": {
            name: {"least": _micro(least[name]), "median": _micro(middle[name])} for name in sides
        },
        "prompts_a_second_of_wall_time": {name: round(NUM_FILE_PROMPTS / min(own)) for name, own in walls.items()},
        "times_the_fastest_reader_and_writer": {
            name: round(least[name] / fastest, 2) for name in sides if "resolve" in name
        },
        "quality_over_none": round(least["resolve"] / least["resolve, quality=false"], 2),
        "prompts_a_second_json_and_networkx": round(plain),
        "load_average_at_the_end": round(os.getloadavg()[0], 2),
    }


def _micro(seconds):
    return round(seconds / NUM_FILE_PROMPTS * 1e6, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["all", "files"], nargs="?", default="all")
    if parser.parse_args().part == "files":
        found = json.loads(RESULTS.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder:
            found["files"] = measure_files(Path(folder)) | {"command": "python speed/resolve.py files"}
        RESULTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        print(json.dumps(found["files"], indent=2))
        return
    with tempfile.TemporaryDirectory() as folder:
        files = measure_files(Path(folder))
    graphs = [
        measure_graphs(5, None, 1_000_000, 2000),
        measure_graphs(5, 0.5, 1_000_000, 2000),
        measure_graphs(8, None, 200_000, 1000),
        measure_graphs(32, None, 20_000, 100),
        measure_graphs(32, 0.5, 20_000, 100),
    ]
    packages = [name for name in ("numpy", "numba", "msgspec", "networkx", "rustworkx") if find_spec(name)]
    found = {
        "command": "python speed/resolve.py",
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), Python {sys.version.split()[0]}",
        "versions": {name: version(name) for name in packages},
        "graphs": graphs,
        "files": files,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
