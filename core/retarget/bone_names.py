"""What bones are called: the part of the body a name tells, its side, and names that tell nothing.

Knows the words of Mixamo, Rigify, Unreal, 3ds Max Biped, Daz, CMU's motion capture and glTF samples. A name
may leave open what it means ("leg" is the shin on a Mixamo rig, the thigh on others); the other bones decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .skeleton import RestSkeleton

Roles = dict[str, float]

# Words without spaces, longest first where one holds another; for each the parts of the body it may mean.
WORDS: dict[str, Roles] = {
    "collarbone": {"clavicle": 1},
    "clavicle": {"clavicle": 1},
    "scapula": {"clavicle": 1},
    "collar": {"clavicle": 1},
    "shoulder": {"clavicle": 0.9, "upperarm": 0.6},
    "shldr": {"upperarm": 0.9, "clavicle": 0.6},
    "upperarm": {"upperarm": 1},
    "humerus": {"upperarm": 1},
    "uparm": {"upperarm": 1},
    "forearm": {"forearm": 1},
    "lowerarm": {"forearm": 1},
    "lowarm": {"forearm": 1},
    "elbow": {"forearm": 1},
    "radius": {"forearm": 1},
    "arm": {"upperarm": 0.8, "forearm": 0.4, "clavicle": 0.3},
    "wrist": {"hand": 1},
    "hand": {"hand": 1},
    "palm": {"hand": 0.8},
    "upperleg": {"thigh": 1},
    "upleg": {"thigh": 1},
    "thigh": {"thigh": 1},
    "femur": {"thigh": 1},
    "lowerleg": {"shin": 1},
    "lowleg": {"shin": 1},
    "tibia": {"shin": 1},
    "shin": {"shin": 1},
    "calf": {"shin": 1},
    "knee": {"shin": 1},
    "leg": {"thigh": 0.7, "shin": 0.7},
    "ankle": {"foot": 1},
    "foot": {"foot": 1},
    "toe": {"toes": 1},
    "ball": {"toes": 1},
    "thumb": {"thumb": 1},
    "index": {"index": 1},
    "pointer": {"index": 1},
    "middle": {"middle": 1},
    "pinky": {"pinky": 1},
    "little": {"pinky": 1},
    "ring": {"ring": 1},
    "finger": {"index": 0.6, "middle": 0.6, "ring": 0.5, "pinky": 0.5},
    "hip": {"hips": 1},
    "pelvis": {"hips": 1},
    "root": {"root": 1, "hips": 0.5},
    "upperchest": {"chest": 1, "spine": 0.6},
    "chest": {"chest": 1, "spine": 0.6},
    "thorax": {"chest": 1, "spine": 0.6},
    "spine": {"spine": 1, "chest": 0.5, "hips": 0.3},
    "abdomen": {"spine": 1},
    "waist": {"spine": 1},
    "lowerback": {"spine": 1},
    "stomach": {"spine": 1},
    "torso": {"spine": 0.9, "chest": 0.7, "hips": 0.3},
    "neck": {"neck": 1},
    "head": {"head": 1},
    "tail": {"tail": 1},
    "jaw": {"jaw": 1},
    "ear": {"ear": 1},
    "eye": {"eye": 1},
}
EXACT = {
    "body": {"hips": 0.6, "spine": 0.5},
    "back": {"spine": 0.9},
    "mid": {"middle": 1},
    "cog": {"hips": 1},
}
# Parts of a rig that move no flesh: controls, ends, sockets, segments of a limb's twist.
HELPERS = frozenset(
    "ik pole target poletarget control ctrl mch slot handslot twist roll nub end endsite site helper effector"
    " socket prop weapon attach".split()
)
SIDES = {"l": "L", "left": "L", "lft": "L", "r": "R", "right": "R", "rgt": "R"}
LIMBS = ("arm", "leg")
FINGERS = ("thumb", "index", "pointer", "middle", "ring", "pinky", "little", "finger")
ALONG = {"leg": ("thigh", "shin", "foot", "toes"), "arm": ("upperarm", "forearm", "hand")}
# Where a smaller share of the names tells something, and of fewer parts of the body, none is believed.
TELLING, PARTS = 0.3, 8
# Chains that rigs divide as they like; of others the first bone is the limb, further ones are segments of it.
ALONG_TRUNK = ("spine", "torso", "neck", "tail")
TRUNK = ("root", "hips", "spine", "chest", "neck", "head")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True)
class BoneName:
    """roles : parts of the body the name may mean, with a weight in 0..1; empty where it tells nothing
    side : "L", "R" or ""; word : the word of the vocabulary, "" for none
    helper : whether it is a control, an end or the like
    place : where it lies among bones of the same name and side, 0..1
    """

    roles: Roles = field(default_factory=dict)
    side: str = ""
    word: str = ""
    helper: bool = False
    place: float = 0.5


def read_name(name: str) -> BoneName:
    """Read one name, for itself."""
    parts = [part.lower() for part in _PART.findall(re.split(r"[:|]", name)[-1])]
    words = [part for part in parts if not part.isdigit()]
    side = next((SIDES[word] for word in words if word in SIDES), "")
    helper = any(word in HELPERS for word in words)
    words = [word for word in words if word not in SIDES]
    joined = "".join(words)
    if joined in EXACT:
        return BoneName(EXACT[joined], side, joined, helper)
    found = _longest_word(joined)
    if not side and found and len(words) == 1 and joined[0] in "lr" and joined[1:].startswith(found):
        side = joined[0].upper()  # "lfemur"
    roles = WORDS.get(found, {})
    if side and found in ("hip", "pelvis"):  # the empty bone before a thigh
        roles = {"hipbone": 1, "thigh": 0.5}
    return BoneName(roles, side, found, helper)


def _longest_word(joined: str) -> str:
    """The vocabulary's longest word in a name; of equal ones that which comes last ("handthumb")."""
    found = [(len(word), joined.rfind(word), word) for word in WORDS if word in joined]
    fingers = [each for each in found if each[2] in FINGERS]
    return max(fingers or found)[2] if found else ""


def read_names(skeleton: RestSkeleton) -> list[BoneName]:
    """Read the names of a skeleton's bones, what they leave open decided by the others and by the tree."""
    names = [read_name(name) for name in skeleton.names]
    telling = [name for name in names if name.roles]
    parts = {(name.word, name.side) for name in telling}
    if len(telling) < TELLING * len(names) and len(parts) < PARTS:
        return [BoneName(helper=name.helper) for name in names]
    above = skeleton.ancestry()
    names = _number(names, above)
    names = [_settle_limb(name, names) for name in names]
    return _settle_trunk(names, skeleton, above)


def _number(names: list[BoneName], above: NDArray[np.bool_]) -> list[BoneName]:
    """Say where bones that share word and side lie along them."""
    out = list(names)
    kinds: dict[tuple[str, str], list[int]] = {}
    for bone, name in enumerate(names):
        if name.word and not name.helper:
            kinds.setdefault((name.word, name.side), []).append(bone)
    for (word, side), bones in kinds.items():
        within = above[np.ix_(bones, bones)]
        rank = within.sum(axis=0)
        length = rank + within.sum(axis=1) + 1  # of the chain through the bone
        for bone, k, n in zip(bones, rank.tolist(), length.tolist(), strict=True):
            out[bone] = replace(out[bone], place=(k + 0.5) / (n if word in ALONG_TRUNK else 4))
            if word in LIMBS and side and n > 1:
                along = ALONG[word]
                out[bone] = replace(out[bone], roles={along[min(k, len(along) - 1)]: 0.9})
    return out


def _settle_limb(name: BoneName, names: list[BoneName]) -> BoneName:
    """An "arm" beside a "forearm" is the upper one, a "leg" below an "upleg" the lower one."""
    words = {other.word for other in names if other.side == name.side and not other.helper}
    others = set().union(*(WORDS[word].keys() for word in words if word in WORDS and word not in LIMBS))
    if name.word == "leg" and len(name.roles) > 1:
        if "thigh" in others and "shin" not in others:
            return replace(name, roles={"shin": 1.0})
        if "shin" in others and "thigh" not in others:
            return replace(name, roles={"thigh": 1.0})
    if name.word == "arm" and len(name.roles) > 1 and "forearm" in others:
        return replace(name, roles={"upperarm": 1.0})
    if name.word == "shoulder" and {"upperarm", "arm"} & words:
        return replace(name, roles={"clavicle": 1.0})
    return name


def _settle_trunk(names: list[BoneName], skeleton: RestSkeleton, above: NDArray[np.bool_]) -> list[BoneName]:
    """Find hips, chest, neck and head among bones that are all called spine, torso or neck."""
    out = list(names)

    def having(*roles: str) -> list[int]:
        return [b for b, name in enumerate(out) if not name.helper and main_role(name) in roles]

    spine, legs, arms = having("spine"), having("thigh", "hipbone"), having("clavicle", "upperarm")
    if spine and not having("hips"):
        carrying = [b for b in spine if above[b, legs].any()] or spine[:1]
        out[carrying[-1]] = replace(out[carrying[-1]], roles={"hips": 0.9, "spine": 0.4})
    spine = having("spine")
    carrying = [b for b in spine if above[b, arms].any()]
    if carrying and not having("chest"):
        out[carrying[-1]] = replace(out[carrying[-1]], roles={"chest": 0.9, "spine": 0.8})
    if having("head") and not having("neck"):
        first = having("head")[0]
        out[first] = replace(out[first], roles={**out[first].roles, "neck": 0.6})
    if not having("head"):
        beyond = having("neck") if len(having("neck")) > 1 else []
        if not having("neck") and carrying:
            beyond = [b for b in spine if above[carrying[-1], b]]
        if len(having("neck")) == 1 and not beyond:  # its head is an end without a bone
            last = having("neck")[0]
            out[last] = replace(out[last], roles={**out[last].roles, "head": 0.6})
        for k, bone in enumerate(beyond):
            role = "head" if k == len(beyond) - 1 else "neck"
            out[bone] = replace(out[bone], roles={role: 0.9}, place=0.5)
    return out


def main_role(name: BoneName) -> str:
    """Return the part a name most likely means, "" where it tells nothing."""
    return max(name.roles, key=lambda role: name.roles[role]) if name.roles else ""


def name_similarity(targets: list[BoneName], sources: list[BoneName]) -> NDArray[np.float64]:
    """Return how well names agree (T, S), 0..1; NaN where one of the two tells nothing."""
    out = np.full((len(targets), len(sources)), np.nan)
    for t, mine in enumerate(targets):
        for s, other in enumerate(sources):
            if mine.roles and other.roles:
                out[t, s] = _agreement(mine, other)
    return out


def _agreement(mine: BoneName, other: BoneName) -> float:
    if mine.side and other.side and mine.side != other.side:
        return 0.0
    shared = max((min(w, other.roles.get(role, 0.0)) for role, w in mine.roles.items()), default=0.0)
    if bool(mine.side) != bool(other.side) and main_role(mine) not in TRUNK:
        shared *= 0.8
    return shared * (1 - 0.3 * abs(mine.place - other.place))
