"""The keys of --json that the documentation promises."""

import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"


def keys_of(verb):
    """Names of keys of a verb's object; those of objects inside it by the key they stand under."""
    section = PAGE.read_text().partition("## JSON")[2].partition("\n## ")[0]
    lines = [line.split("|") for line in section.splitlines() if line.startswith("| ")]
    (text,) = [cells[2] for cells in lines if cells[1].strip().replace("`", "") == verb]
    inside = {
        key: set(re.findall(r"`(\w+)`", within))
        for key, within in re.findall(r"`(\w+)` \(((?:`\w+` ?)+)\)", text)
    }
    return set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", text))), inside


def check(verb, out):
    """Standard output is one object with exactly the keys promised; return it."""
    found = json.loads(out)
    keys, inside = keys_of(verb)
    assert set(found) == keys
    for key, expected in inside.items():
        for item in found[key]:
            assert set(item) == expected
    return found
