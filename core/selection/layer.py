"""Selection layers and stacks of them: the document of a rig made by gestures.

Everything here is a formula with a few numbers, not weights: a stack can be evaluated at any points, edited,
and written to JSON without loss.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from ..errors import SelectionError
from .compose import Operation
from .depth import FrontSurface
from .feather import Feather
from .shapes import Shape, shape_from_dict
from .viewpoint import Viewpoint

FORMAT = "gaussianimate-selection"
VERSION = 1


@dataclass(frozen=True)
class SelectionLayer:
    """One gesture.

    bone : the bone whose weights it changes
    viewpoint : the view it was drawn in
    shape : what was drawn, pixels of the view's window
    feather : how it fades; its width is the gesture's smoothness, pixels
    strength : the selection where it is full, 0..1
    operation : how it changes what the layers before it gave
    front : keeps it to the front surface; None selects through everything
    muted : the layer does nothing
    name : for the user
    """

    bone: str
    viewpoint: Viewpoint
    shape: Shape
    feather: Feather = field(default_factory=Feather)
    strength: float = 1.0
    operation: Operation = "add"
    front: FrontSurface | None = None
    muted: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", float(self.strength))
        if not 0 <= self.strength <= 1:
            raise SelectionError(f"The strength of a selection lies between 0 and 1, not at {self.strength}")
        if self.operation not in get_args(Operation):
            raise SelectionError(
                f"Selections cannot {self.operation!r} weights, but {', '.join(get_args(Operation))} them"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "bone": self.bone,
            "viewpoint": self.viewpoint.to_dict(),
            "shape": self.shape.to_dict(),
            "feather": self.feather.to_dict(),
            "strength": self.strength,
            "operation": self.operation,
            "front": None if self.front is None else self.front.to_dict(),
            "muted": self.muted,
            "name": self.name,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SelectionLayer:
        """Read what `to_dict` wrote.

        Raises
        ------
        SelectionError : something is missing or out of range
        """
        try:
            values, front = dict(data), data.get("front")
            values["viewpoint"] = Viewpoint.from_dict(data["viewpoint"])
            values["shape"] = shape_from_dict(data["shape"])
            values["feather"] = Feather(**data["feather"])
            values["front"] = None if front is None else FrontSurface.from_dict(front)
            return cls(**values)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SelectionError(f"A selection layer cannot be read: {error}") from error


@dataclass(frozen=True)
class LayerStack:
    """The layers of all bones of a rig, in the order they act.

    bones : the bones, in the order of the columns of the weights; layers of other bones are an error
    layers : those of one bone act on each other only
    """

    bones: tuple[str, ...]
    layers: tuple[SelectionLayer, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "bones", tuple(self.bones))
        object.__setattr__(self, "layers", tuple(self.layers))
        if len(set(self.bones)) != len(self.bones):
            raise SelectionError("A stack of selections names a bone twice")
        for layer in self.layers:
            if layer.bone not in self.bones:
                raise SelectionError(f"A selection layer is of the bone {layer.bone}, which the rig has not")

    def of_bone(self, bone: str, muted: bool = True) -> tuple[SelectionLayer, ...]:
        """Return the layers of one bone, those that are muted only if asked."""
        return tuple(layer for layer in self.layers if layer.bone == bone and (muted or not layer.muted))

    def added(self, layer: SelectionLayer, at: int | None = None) -> LayerStack:
        """Return the stack with one more layer, last or at an index."""
        layers = list(self.layers)
        layers.insert(len(layers) if at is None else at, layer)
        return replace(self, layers=tuple(layers))

    def without(self, index: int) -> LayerStack:
        """Return the stack without a layer."""
        return replace(self, layers=self.layers[:index] + self.layers[index + 1 :])

    def changed(self, index: int, **values: Any) -> LayerStack:
        """Return the stack with values of one layer replaced, e.g. ``changed(2, muted=True)``."""
        layers = list(self.layers)
        layers[index] = replace(layers[index], **values)
        return replace(self, layers=tuple(layers))

    def moved(self, index: int, to: int) -> LayerStack:
        """Return the stack with a layer moved to another index."""
        layers = list(self.layers)
        layers.insert(to, layers.pop(index))
        return replace(self, layers=tuple(layers))

    def followed(self, bones: Iterable[str], now: Mapping[str, str]) -> LayerStack:
        """Return the stack for bones that have other names, numbers or are gone, their layers with them.

        Parameters
        ----------
        bones : all there are now, in order
        now : the name of each bone that is left, by the name it had
        """
        layers = (replace(layer, bone=now[layer.bone]) for layer in self.layers if layer.bone in now)
        return LayerStack(tuple(bones), tuple(layers))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with the format and its version."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "bones": list(self.bones),
            "layers": [layer.to_dict() for layer in self.layers],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LayerStack:
        """Read what `to_dict` wrote.

        Raises
        ------
        SelectionError : another format, a later version, or a layer that cannot be read
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise SelectionError("These are no selection layers of GaussiAnimate")
        if data.get("version") != VERSION:
            raise SelectionError(
                f"The selection layers are of version {data.get('version')}, this GaussiAnimate reads "
                f"{VERSION}; install a newer one"
            )
        bones, layers = data.get("bones", []), data.get("layers", [])
        if not isinstance(bones, list) or not isinstance(layers, list):
            raise SelectionError("The selection layers cannot be read: bones and layers are lists")
        return cls(tuple(map(str, bones)), tuple(SelectionLayer.from_dict(layer) for layer in layers))

    def to_json(self) -> str:
        """Return JSON text; floats are written so that reading gives the same bits."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> LayerStack:
        """Read what `to_json` wrote.

        Raises
        ------
        SelectionError : the text is not JSON, or not of this format
        """
        try:
            return cls.from_dict(json.loads(text))
        except (json.JSONDecodeError, RecursionError) as error:
            raise SelectionError(f"The selection layers cannot be read: {error}") from error
