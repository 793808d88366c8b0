#!/bin/sh
# Drive a Blender with a window: tests/gui/run.sh COMMAND..., where COMMAND starts Blender.
# Without a screen, give for instance `xvfb-run blender`. Pictures are left in build/gui.
set -u
cd "$(dirname "$0")/../.." || exit 2
[ $# -gt 0 ] || set -- blender
command -v "$1" >/dev/null 2>&1 || { echo "tests/gui skipped: no $1 found (make test-gui BLENDER=...)"; exit 0; }
python=${VENV:-.venv}/bin/python
archive=$("$python" .ci/build_extension.py --output build/gui | sed -n 's/ (.*//p' | tail -1)
[ -f "$archive" ] || { echo "tests/gui: the extension could not be built" >&2; exit 2; }
export GAUSSIANIMATE_ARCHIVE="$archive" GAUSSIANIMATE_GUI_OUT="$PWD/build/gui"
failed=0
for script in ${SCRIPTS:-tests/gui/drive_*.py}; do
    BLENDER_USER_RESOURCES=$(mktemp -d "$PWD/build/gui/user-XXXXXX"); export BLENDER_USER_RESOURCES
    echo "== $script"
    "$@" --factory-startup --enable-event-simulate --python-exit-code 1 --python "$script" || failed=1
    rm -rf "$BLENDER_USER_RESOURCES"
done
exit $failed
