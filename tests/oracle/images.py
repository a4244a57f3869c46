#!/usr/bin/env python3
"""Writes small images of many kinds with Pillow, and what torchvision reads, for tests/data_images_test.cpp.

    python tests/oracle/images.py tests/data/data/images

Beside the images there is expected.bin: for each a line `file mode sizes` and the bytes [channels, height, width].
"""

import io
import pathlib
import struct
import subprocess
import sys
import zlib

import numpy as np
from PIL import Image
from torchvision.io import ImageReadMode, decode_image, read_file


def picture(height=13, width=18, channels=3):
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 120 * np.sin(x / (3 + c) + c) * np.cos(y / (2 + c)) for c in range(channels)]
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def png_16(path, values):
    """Pillow writes no RGB of 16 bits."""
    height, width, _ = values.shape
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def cjpeg(image, path, *options):
    """libjpeg-turbo's own program: Pillow knows few samplings."""
    data = io.BytesIO()
    image.save(data, "ppm")
    path.write_bytes(subprocess.run(["cjpeg", *options], input=data.getvalue(), capture_output=True, check=True).stdout)


def main():
    out = pathlib.Path(sys.argv[1])
    rgb = Image.fromarray(picture())
    rgba = Image.fromarray(picture(channels=4))
    rgb.save(out / "rgb.jpg", quality=90)
    rgb.save(out / "progressive.jpg", quality=80, progressive=True)
    rgb.save(out / "full.jpg", quality=95, subsampling=0)
    rgb.convert("L").save(out / "gray.jpg")
    rgb.convert("CMYK").save(out / "cmyk.jpg")
    Image.fromarray(picture(64, 96)).save(out / "large.jpg", quality=70)
    # For decoding parts: noise, where a neighbour more or less shows, colours at fractions of the width and the height.
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 256, (67, 91, 3), np.uint8))
    for sampling in ("1x1", "2x1", "2x2", "1x2", "4x1", "1x4"):
        cjpeg(noise, out / f"large_{sampling}.jpg", "-quality", "30", "-sample", sampling)
    cjpeg(noise, out / "large_restart.jpg", "-quality", "30", "-restart", "3B")
    cjpeg(noise, out / "large_progressive.jpg", "-quality", "30", "-progressive")
    noise.convert("L").save(out / "large_gray.jpg", quality=30)
    noise.convert("CMYK").save(out / "large_cmyk.jpg", quality=30)
    rgb.save(out / "rgb.png")
    rgba.save(out / "rgba.png")
    rgb.convert("L").save(out / "gray.png")
    rgba.convert("LA").save(out / "gray_alpha.png")
    rgb.convert("P", palette=Image.Palette.ADAPTIVE, colors=16).save(out / "palette.png")
    transparent = rgb.convert("P", palette=Image.Palette.ADAPTIVE, colors=16)
    transparent.save(out / "palette_alpha.png", transparency=3)
    rgb.convert("1").save(out / "one_bit.png")
    png_16(out / "sixteen.png", picture().astype(np.uint16) * 257 + 3)
    rgb.save(out / "rgb.ppm")
    rgb.convert("L").save(out / "gray.pgm")
    rgb.save(out / "rgb.bmp")
    rgb.convert("L").save(out / "gray.bmp")
    with open(out / "expected.bin", "wb") as f:
        for path in sorted(p for p in out.iterdir() if p.suffix in (".jpg", ".png", ".ppm", ".pgm", ".bmp")):
            if path.name.startswith("large"):  # for decoding at smaller sizes, and parts
                continue
            if path.suffix in (".jpg", ".png") and path.name != "sixteen.png":
                data = read_file(str(path))
                for mode in ("unchanged", "rgb", "gray"):
                    if path.name.startswith(("cmyk", "palette")) and mode == "unchanged":  # these come as RGB with us
                        continue
                    x = decode_image(data, getattr(ImageReadMode, mode.upper())).numpy()
                    f.write(f"{path.name} {mode} {','.join(map(str, x.shape))}\n".encode() + x.tobytes())
            else:
                x = picture() if path.name == "sixteen.png" else np.asarray(Image.open(path).convert("RGB"))
                f.write(f"{path.name} rgb {x.shape[2]},{x.shape[0]},{x.shape[1]}\n".encode() + x.transpose(2, 0, 1).tobytes())


if __name__ == "__main__":
    main()
