# SPDX-License-Identifier: Apache-2.0
"""Folders for compare.py. Row `corrupt`: two folders of the same images, one undamaged, one with every hundredth image
damaged. Row `reopen`: many names of a few images."""
import pathlib

COMMITTED = pathlib.Path(__file__).resolve().parents[2] / "tests/data/broken-images/valid_but_unusual"


def truncated(jpeg):
    return jpeg[:len(jpeg) // 2]


def flipped(jpeg):
    at = jpeg.rfind(b"\xff\xda") + 30  # the last scan: an earlier one may be a thumbnail's
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
    """The last scan of a progressive JPEG, which costs a pass over the image, 200 times."""
    jpeg = (COMMITTED / "progressive_test.jpg").read_bytes()
    last, end = jpeg.rfind(b"\xff\xda"), jpeg.rfind(b"\xff\xd9")
    return jpeg[:end] + 200 * jpeg[last:end] + jpeg[end:]


def wrong_extension(_):
    return (COMMITTED / "pngsuite_basn2c16.png").read_bytes()


# loader_bench does these two itself, after it has opened the folder and read all of it. These are its names for them.
MISSING, UNREADABLE = "remove", "block"
WAYS = (MISSING, UNREADABLE, zeroed, swapped, huge, empty, many_scans, truncated, flipped, wrong_extension)
SURE = WAYS[:7]  # bad for every crop; the next two are bad only if the crop needs the damaged part
GOOD = WAYS[9:]  # still a good image


def bad_among(count):
    """The least and the most images that a loader may find bad, in a damaged folder of count images."""
    ways = [way for _, way in damaged(count)]
    return sum(way in SURE for way in ways), sum(way not in GOOD for way in ways)


def damaged(count):
    """The numbers of the damaged images of a folder of count images, each with its kind of damage."""
    return [(number, WAYS[number // 100 % len(WAYS)]) for number in range(50, count, 100)]


def key(number):
    return f"{'even' if number % 2 == 0 else 'odd'}/{number:05}.jpg"


def link(sources, folder, number):
    path = folder / key(number)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.symlink_to(sources[number % len(sources)].resolve())
    return path


def image_files(images):
    return sorted(path for path in pathlib.Path(images).rglob("*") if path.is_file())


def hard_links(images, folder, count):
    """Makes count files in 1,000 classes, which share the content of the first files of images."""
    originals = []
    for source in image_files(images)[:100]:  # one file has at most 65,000 names in ext4
        originals.append(folder.parent / f"{len(originals):03}{source.suffix}")
        originals[-1].write_bytes(source.read_bytes())
    for number in range(1000):
        (folder / f"{number:03}").mkdir(parents=True)
    for number in range(count):
        (folder / f"{number % 1000:03}" / f"{number:06}{originals[number % len(originals)].suffix}").hardlink_to(originals[number % len(originals)])
    return folder


def make(images, folder, count, damage):
    """Makes count links to the files of images, in two classes. With damage, every hundredth is a damaged file; the
    kinds alternate."""
    sources, ways = image_files(images), dict(damaged(count)) if damage else {}
    for number in range(count):
        path, way = link(sources, folder, number), ways.get(number)
        if callable(way):
            jpeg = path.read_bytes()
            path.unlink()
            path.write_bytes(way(jpeg))
    return folder


def mend(images, folder, count):
    """Puts back what loader_bench removed. Returns the arguments that make it remove the same again."""
    sources, words = image_files(images), {}
    for number, way in damaged(count):
        if not callable(way):
            link(sources, folder, number)
            words[way] = key(number)
    return words
