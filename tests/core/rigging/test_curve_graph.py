"""Junctions of the curve graph."""

import numpy as np

from gaussianimate.core.rigging.curves.curve_graph import CurveGraph


def h_shape(gap):
    """Four limbs of three nodes on two junctions `gap` apart; every node owns one surface vertex."""
    nodes = [[0, 0, 0], [gap, 0, 0]]
    links = [[0, 1]]
    for junction, (x, y) in ((0, (-1, 1)), (0, (-1, -1)), (1, (1, 1)), (1, (1, -1))):
        before = junction
        for step in (1, 2, 3):
            nodes.append([nodes[junction][0] + x * step, y * step, 0])
            links.append([before, len(nodes) - 1])
            before = len(nodes) - 1
    nodes = np.array(nodes, float)
    return CurveGraph(nodes, np.arange(len(nodes)), np.array(links), np.ones(len(nodes))), nodes


def degrees(graph):
    return sorted(len(near) for near in graph.near.values())


def test_junctions_of_one_ball_are_one():
    graph, nodes = h_shape(0.09)
    graph.join_junctions(nodes, np.full(len(nodes), 0.5))
    assert degrees(graph)[-2:] == [2, 4] and graph.loops() == 0
    assert len(graph.branches()) == 4


def test_junctions_of_a_long_trunk_stay_two():
    graph, nodes = h_shape(0.15)
    graph.join_junctions(nodes, np.full(len(nodes), 0.5))
    assert degrees(graph)[-2:] == [3, 3]
