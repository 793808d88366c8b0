"""Playing and baking run on a Blender that has only numpy."""

import subprocess
import sys

CHECK = """
import sys
for name in ("scipy", "trimesh", "plyfile", "gaussforge", "torch", "PIL", "bpy"):
    sys.modules[name] = None
import gaussianimate.core.formats as formats
assert "gaussianimate.core.formats.captures" not in sys.modules
import numpy as np
cloud, _ = formats.read_cloud(sys.argv[1])
formats.write_sequence([cloud, cloud], sys.argv[2], "f", 1, 2)
capture = formats.read_capture(sys.argv[2])
assert capture.frame_count == 2
np.testing.assert_array_equal(capture.load_cloud(1).positions, cloud.positions)
formats.mesh_to_splats
"""


def test_binary_ply_needs_numpy_only(splats, tmp_path):
    path = splats.write()
    subprocess.run([sys.executable, "-c", CHECK, str(path), str(tmp_path / "out")], check=True)


def test_unknown_names_are_attribute_errors():
    import gaussianimate.core.formats as formats

    assert not hasattr(formats, "nonsense")
    assert all(hasattr(formats, name) for name in formats.__all__)
