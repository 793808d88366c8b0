"""Learned relevance instead of nearest patches: a kernel blend of captured residuals.

    V(q) = mean + sum_n alpha_n k(q, n),    alpha = (K + nu I)^-1 (V_n - mean)
    k(x, y) = s (1 + |w (x - y)|^2 / 2a)^-a + (v x) . (v y)

over keys x (`keys`) and values V (`values`) of the captured frames: Gaussian process regression with a
rational quadratic and a linear kernel (Rasmussen & Williams, "Gaussian Processes for Machine Learning", 2006,
ch. 2 and 4). Unlike a blend of neighbours its weights are signed, so it extrapolates. `kernel_fit` learns the
relevances w and v. What lies here is numpy only and answers a pose in milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RigError
from .arrays import are_indices, are_parents, check_arrays, misfit
from .database import Residuals, repaired_rotations
from .keys import F32, KeyLayout, key_groups, motion_keys
from .values import ValueSpace

BLOCK = 256  # frames answered at once
KERNEL = "motion kernel"
# As in `arrays`: J joints, D columns in G groups, N captured frames, B bones, V values.
_LAYOUT = {
    "parents": "i J",
    "joint_positions": "f J 3",
    "main_joint": "i",
    "up": "f 3",
    "rotation_joints": "i R",
    "position_joints": "i X",
    "key_means": "f D",
    "key_scales": "f D",
    "key_groups": "i D",
    "key_limits": "f G",
    "value_roots": "f B 3 3",
    "value_masses": "f B",
    "relevances": "f D",
    "centres": "f N D",
    "blend": "f N V",
    "linear": "f D V",
    "mean": "f V",
    "numbers": "f 4",
}


@dataclass(frozen=True)
class KeyScaling:
    """From raw keys to numbers of like size: each group of columns centred and of unit norm on the capture.

    means : (D,) float32; scales : (D,) float32 factors; groups : (D,) int32, group of each column
    limits : (G,) float32, longest that a group of a scaled key may be. Longer ones (a jump on the timeline
        looks like an enormous velocity) are cut to it, so that no answer explodes.
    """

    means: F32
    scales: F32
    groups: NDArray[np.int32]
    limits: F32

    def __call__(self, keys: F32) -> F32:
        """Scaled keys (F, D) of raw ones."""
        scaled = (keys - self.means) * self.scales
        starts = np.flatnonzero(np.diff(self.groups, prepend=-1))
        lengths = np.sqrt(np.add.reduceat(scaled * scaled, starts, axis=1))
        shrink = np.minimum(1, self.limits / np.maximum(lengths, 1e-12))
        return (scaled * shrink[:, self.groups]).astype(np.float32, copy=False)


@dataclass(frozen=True)
class KernelModel:
    """Predicts the residuals of outer bones from poses and their recent past.

    layout, scaling, values : what keys and values are made of
    relevances : (D,) float32, w of each column
    centres : (N, D) float32, scaled keys of the captured frames times w; blend : (N, 12 B) float32, alpha
    linear : (D, 12 B) float32, the linear kernel's share, summed up; mean : (12 B,) float32
    shape, scale : a and s of the rational quadratic kernel
    error : leave-one-clip-out squared error of the fit, in parts of the values' variance
    """

    layout: KeyLayout
    scaling: KeyScaling
    values: ValueSpace
    relevances: F32
    centres: F32
    blend: F32
    linear: F32
    mean: F32
    shape: float
    scale: float
    error: float

    def predict(
        self,
        rotations: NDArray[np.floating],
        root_translations: NDArray[np.floating],
        fps: float | None = None,
        clips: NDArray[np.integer] | None = None,
        rows: ArrayLike | None = None,
        times: NDArray[np.floating] | None = None,
    ) -> Residuals:
        """Residuals of every outer bone in R frames.

        Parameters
        ----------
        rotations : (F, J, 4) local quaternions wxyz; root_translations : (F, 3) metres
        fps : frames a second of the poses, any rate; or give their `times` (F,) in seconds
        clips : (F,) int, where several motions follow each other; None: one
        rows : frames wanted, None: all. For a live pose: its history with the pose last, and `rows=[-1]`;
            `layout.history` seconds of past are looked at, a shorter past is held at its oldest pose.
        """
        return self.values.project(self.predict_values(rotations, root_translations, fps, clips, rows, times))

    def predict_values(
        self,
        rotations: NDArray[np.floating],
        root_translations: NDArray[np.floating],
        fps: float | None = None,
        clips: NDArray[np.integer] | None = None,
        rows: ArrayLike | None = None,
        times: NDArray[np.floating] | None = None,
    ) -> F32:
        """As `predict`, before the projection to rigid motions: values (R, 12 B)."""
        count = len(rotations)
        if times is None:
            if fps is None or not fps > 0:
                raise ValueError("either fps or times must be given")
            times = np.arange(count) / fps
        wanted = np.arange(count) if rows is None else np.arange(count)[np.asarray(rows)]
        rotations = repaired_rotations(rotations)
        root_translations = np.nan_to_num(root_translations, posinf=0.0, neginf=0.0)
        answers = np.empty((len(wanted), self.blend.shape[1]), np.float32)
        for start in range(0, len(wanted), BLOCK):
            block = slice(start, start + BLOCK)
            keys = motion_keys(self.layout, rotations, root_translations, times, clips, wanted[block])
            answers[block] = self.answer(self.scaling(keys))
        return answers

    def answer(self, scaled: F32) -> F32:
        """Values (F, 12 B) of scaled keys (F, D)."""
        squared = squared_distances(scaled * self.relevances, self.centres, self._centre_lengths)
        weights = self.scale * rational_quadratic(squared, self.shape)
        values = weights @ self.blend + scaled @ self.linear + self.mean
        return values.astype(np.float32, copy=False)

    @cached_property
    def _centre_lengths(self) -> F32:
        return squared_lengths(self.centres)

    def to_arrays(self) -> dict[str, NDArray]:
        """Everything as arrays by name, for an .npz or an ID property."""
        return {
            "kernel_parents": self.layout.parents,
            "kernel_joint_positions": self.layout.joint_positions,
            "kernel_main_joint": np.array(self.layout.main_joint),
            "kernel_up": self.layout.up,
            "kernel_rotation_joints": self.layout.rotation_joints,
            "kernel_position_joints": self.layout.position_joints,
            "kernel_key_means": self.scaling.means,
            "kernel_key_scales": self.scaling.scales,
            "kernel_key_groups": self.scaling.groups,
            "kernel_key_limits": self.scaling.limits,
            "kernel_value_roots": self.values.roots,
            "kernel_value_masses": self.values.masses,
            "kernel_relevances": self.relevances,
            "kernel_centres": self.centres,
            "kernel_blend": self.blend,
            "kernel_linear": self.linear,
            "kernel_mean": self.mean,
            "kernel_numbers": np.array([self.shape, self.scale, self.error, self.layout.tick]),
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray]) -> KernelModel:
        """The model that `to_arrays` wrote.

        Raises
        ------
        RigError : an array is missing or does not fit the others, or the keys have other columns than here
        """
        a = {name: array for key, array in arrays.items() if (name := key.removeprefix("kernel_")) != key}
        sizes = check_arrays(a, _LAYOUT, KERNEL)
        shape, scale, error, tick = (float(x) for x in a["numbers"])
        joints = (a["rotation_joints"], a["position_joints"], a["main_joint"])
        fits = (
            are_parents(a["parents"])
            and all(are_indices(indices, sizes["J"]) for indices in joints)
            and are_indices(a["key_groups"], sizes["G"])
            and sizes["V"] == 12 * sizes["B"]
            and min(shape, tick, *a["value_masses"]) > 0
        )
        if not fits:
            raise misfit(KERNEL)
        layout = KeyLayout(
            a["parents"],
            a["joint_positions"],
            int(a["main_joint"]),
            a["up"],
            a["rotation_joints"],
            a["position_joints"],
            tick,
        )
        if len(key_groups(layout)[0]) != sizes["D"]:
            raise RigError("The motion kernel is of another version; build the rig again from the capture.")
        scaling = KeyScaling(a["key_means"], a["key_scales"], a["key_groups"], a["key_limits"])
        return KernelModel(
            layout,
            scaling,
            ValueSpace(a["value_roots"], a["value_masses"]),
            relevances=a["relevances"],
            centres=a["centres"],
            blend=a["blend"],
            linear=a["linear"],
            mean=a["mean"],
            shape=shape,
            scale=scale,
            error=error,
        )


def squared_lengths(a: F32) -> F32:
    """(F,) of rows (F, D)."""
    return np.einsum("fd,fd->f", a, a)


def squared_distances(a: F32, b: F32, b_lengths: F32 | None = None) -> F32:
    """(F, N) squared distances of rows (F, D) and (N, D), whose squared lengths (N,) may be known."""
    b_lengths = squared_lengths(b) if b_lengths is None else b_lengths
    return np.maximum(squared_lengths(a)[:, None] + b_lengths - 2 * (a @ b.T), 0)


def rational_quadratic(squared: F32, shape: float) -> F32:
    """(1 + d^2 / 2a)^-a: a mixture of Gaussian kernels of many widths."""
    return (1 + squared / (2 * shape)) ** -shape
