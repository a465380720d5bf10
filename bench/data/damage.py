# SPDX-License-Identifier: Apache-2.0
"""A folder of pictures twice, whole and with one in a hundred damaged, for the row `corrupt` of beside.py.

Missing and unreadable files are left out: they would have to go between the opening of the folder and its reading, and cost least.
"""
import pathlib

COMMITTED = pathlib.Path(__file__).resolve().parents[2] / "tests/data/broken-images/valid_but_unusual"


def truncated(jpeg):
    return jpeg[:len(jpeg) // 2]


def flipped(jpeg):
    at = jpeg.rfind(b"\xff\xda") + 30  # behind a thumbnail's
    return jpeg[:at] + bytes(byte ^ (1 << i % 8 if i % 40 == 0 else 0) for i, byte in enumerate(jpeg[at:]))


def zeroed(jpeg):
    return bytes(4096) + jpeg[4096:]


def swapped(jpeg):
    return jpeg[len(jpeg) // 2:] + jpeg[:len(jpeg) // 2]


def huge(jpeg):
    at = max(jpeg.rfind(marker) for marker in (b"\xff\xc0", b"\xff\xc2")) + 5
    return jpeg[:at] + b"\xff\xdc\xff\xdc" + jpeg[at + 4:]


def empty(_):
    return b""


def many_scans(_):
    """The last scan of a progressive JPEG, which costs a pass over the picture, 200 times."""
    jpeg = (COMMITTED / "progressive_test.jpg").read_bytes()
    last, end = jpeg.rfind(b"\xff\xda"), jpeg.rfind(b"\xff\xd9")
    return jpeg[:end] + 200 * jpeg[last:end] + jpeg[end:]


def wrong_extension(_):
    return (COMMITTED / "pngsuite_basn2c16.png").read_bytes()


WAYS = (truncated, flipped, zeroed, swapped, huge, empty, many_scans, wrong_extension)


def make(images, folder, count, damage):
    """count links to the pictures of images, in two classes; with damage, each hundredth a file that is damaged, one way after another."""
    sources = sorted(path for path in pathlib.Path(images).rglob("*") if path.is_file())
    for number in range(count):
        path = folder / ("even" if number % 2 == 0 else "odd") / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        source = sources[number % len(sources)]
        if damage and number % 100 == 50:
            path.write_bytes(WAYS[number // 100 % len(WAYS)](source.read_bytes()))
        else:
            path.symlink_to(source.resolve())
    return folder
