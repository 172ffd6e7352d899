"""Formats the facts that `ds4py inspect` gathers as text."""

from ds4py.console import quantity, size, table
from ds4py.constants import CSA_RATIO, HCA_RATIO
from ds4py.json_types import Json

LAYER_KINDS = {
    0: "window only",
    CSA_RATIO: f"window + ratio {CSA_RATIO}, indexed (CSA)",
    HCA_RATIO: f"window + ratio {HCA_RATIO} (HCA)",
}
"""Names for the compression ratios of a layer (docs/model.md, section 1.2)."""


def render(facts: Json) -> str:
    """Formats all facts of a file, one section after another."""
    sections = [head(facts)]
    if facts["target"]:
        sections += [target_section(facts), memory_section(facts["memory"])]
    else:
        sections += ["not a DS4 target: " + facts["not_a_target"], drafter_section(facts)]
    if "pair" in facts:
        sections += [f"fits {facts['pair']['target']}" if facts["pair"]["fits"] else facts["pair"]["reason"]]
    sections += ["tensors by type\n" + totals_table(facts["types"]), "tensors by role\n" + totals_table(facts["roles"])]
    if "tensors" in facts:
        sections.append("tensors (shape: fastest dimension first)\n" + tensor_table(facts["tensors"]))
    return "\n\n".join(sections)


def head(facts: Json) -> str:
    """Formats name, architecture and size of the file in two lines."""
    files = facts["files"]
    shards = f", {len(files)} shards" if len(files) > 1 else ""
    architecture = str(facts["architecture"]) + ("" if facts["packed_layout"] is None else ", packed for the CPU")
    return (
        f"{files[0]}{shards}\n"
        f"  {facts['name'] or 'no name'}: architecture {architecture}, GGUF version {facts['gguf_version']}, "
        f"{quantity(facts['parameters'])} parameters, {size(facts['bytes'])}"
    )


def target_section(facts: Json) -> str:
    """Formats the hyperparameters, and how many layers of each kind there are."""
    numbers = [(name.replace("_", " "), str(value)) for name, value in facts["hyperparameters"].items()]
    layers = [
        (str(count), LAYER_KINDS.get(int(ratio), f"ratio {ratio}")) for ratio, count in facts["layers_by_ratio"].items()
    ]
    return f"hyperparameters\n{table(numbers)}\n\nlayers by kind\n{table(layers)}"


def drafter_section(facts: Json) -> str:
    """Formats the numbers of a drafter, or the reason why the file is not a drafter."""
    if facts["drafter"] is None:
        return f"not a DSpark drafter: {facts['not_a_drafter']}"
    numbers = [(name.replace("_", " "), fact_text(value)) for name, value in facts["drafter"].items()]
    return f"DSpark drafter\n{table(numbers)}"


def fact_text(value: object) -> str:
    """Formats a value of any type: yes and no for booleans, commas in lists."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def memory_section(memory: Json) -> str:
    """Formats the memory that each device needs, part by part."""
    from ds4py.memory import NAMES, PARTS

    sections = [f"memory at a context of {memory['context']} with {memory['kv_dtype'].upper()} KV, counted from sizes"]
    for device in memory["devices"]:
        parts = [(NAMES.get(part, part), size(device[part])) for part in PARTS if device[part]]
        parts += [("needed" if device["fits"] else "needed (does not fit)", size(device["needed"]))]
        parts += [("free", size(device["available"]))]
        sections.append(f"  {device['device']}\n{table(parts, indent=4)}")
    return "\n".join(sections)


def totals_table(groups: dict[str, dict[str, int]]) -> str:
    """Formats the totals of each group in one line."""
    return table(
        [
            (
                name,
                count(group["tensors"], "tensor"),
                f"{quantity(group['parameters'])} parameters",
                size(group["bytes"]),
            )
            for name, group in groups.items()
        ]
    )


def count(number: int, noun: str) -> str:
    """Formats a number with its noun, such as `1 tensor` or `2 tensors`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def tensor_table(tensors: list[Json]) -> str:
    """Formats one line for each tensor, in the order of the file."""
    return table([(t["name"], t["type"], " x ".join(map(str, t["shape"])), size(t["bytes"])) for t in tensors])
