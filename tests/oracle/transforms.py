#!/usr/bin/env python3
"""Writes what torchvision makes of a small image, for tests/data_transforms_test.cpp.

    python tests/oracle/transforms.py tests/data/data/transforms.bin

needs torch and torchvision. Each entry of the file is a line `name dtype sizes` and the values, little-endian.
"""

import sys

import numpy as np
import torch
from torchvision.transforms import InterpolationMode as Mode
from torchvision.transforms.v2 import functional as f

NEAREST, BILINEAR, BICUBIC = Mode.NEAREST, Mode.BILINEAR, Mode.BICUBIC
CASES = {
    "resize_small": lambda x: f.resize(x, [5, 7], antialias=True),
    "resize_one": lambda x: f.resize(x, [1, 1], antialias=True),
    "resize_large": lambda x: f.resize(x, [21, 30], antialias=True),
    "resize_mixed": lambda x: f.resize(x, [20, 6], antialias=True),
    "resize_short": lambda x: f.resize(x, [8], antialias=True),
    "resize_short_max": lambda x: f.resize(x, [8], max_size=9, antialias=True),
    "resize_plain": lambda x: f.resize(x, [6, 9], antialias=False),
    "resize_plain_large": lambda x: f.resize(x, [19, 22], antialias=False),
    "resize_nearest": lambda x: f.resize(x, [6, 25], interpolation=NEAREST),
    "resize_bicubic": lambda x: f.resize(x, [6, 9], interpolation=BICUBIC, antialias=True),
    "resized_crop": lambda x: f.resized_crop(x, 2, 3, 8, 11, [6, 6], antialias=True),
    "crop_outside": lambda x: f.crop(x, -2, 9, 8, 12),
    "center_crop": lambda x: f.center_crop(x, [6, 8]),
    "center_crop_odd": lambda x: f.center_crop(x, [10, 10]),
    "center_crop_larger": lambda x: f.center_crop(x, [16, 12]),
    "pad": lambda x: f.pad(x, [1, 2, 3, 4], fill=0),
    "pad_reflect": lambda x: f.pad(x, [2, 3], padding_mode="reflect"),
    "rotate_30": lambda x: f.rotate(x, 30.5),
    "rotate_bilinear": lambda x: f.rotate(x, -17, interpolation=BILINEAR),
    "rotate_expand": lambda x: f.rotate(x, 40, interpolation=BILINEAR, expand=True),
    "rotate_center": lambda x: f.rotate(x, 200, interpolation=BILINEAR, center=[3, 4]),
    "rotate_90": lambda x: f.rotate(x, 90, expand=True),
    "rotate_180": lambda x: f.rotate(x, 180),
    "rotate_fill": lambda x: f.rotate(x, 25, interpolation=BILINEAR, fill=[0.5 if x.is_floating_point() else 100.0]),
    "affine": lambda x: f.affine(x, 20, [2, -1], 1.2, [10, 5], interpolation=BILINEAR),
    "affine_nearest": lambda x: f.affine(x, -33, [1, 2], 0.8, [0, 0]),
    "brightness": lambda x: f.adjust_brightness(x, 1.4),
    "contrast": lambda x: f.adjust_contrast(x, 0.6),
    "contrast_more": lambda x: f.adjust_contrast(x, 1.7),
    "saturation": lambda x: f.adjust_saturation(x, 0.3),
    "saturation_more": lambda x: f.adjust_saturation(x, 1.8),
    "hue": lambda x: f.adjust_hue(x, 0.2),
    "hue_back": lambda x: f.adjust_hue(x, -0.45),
    "gray": lambda x: f.rgb_to_grayscale(x),
    "gray_3": lambda x: f.rgb_to_grayscale(x, 3),
    "blur": lambda x: f.gaussian_blur(x, [3, 5], [0.8, 1.5]),
    "blur_default": lambda x: f.gaussian_blur(x, [5, 5]),
    "to_float": lambda x: f.to_dtype(x, torch.float32, scale=True),
    "to_bytes": lambda x: f.to_dtype(x, torch.uint8, scale=True),
    "normalize": lambda x: f.normalize(f.to_dtype(x, torch.float32, scale=True), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
}


def picture():
    """Smooth colours with noise, a gray patch, and the extremes."""
    random = np.random.default_rng(1)
    y, x = np.mgrid[0:13, 0:17]
    planes = [127 + 120 * np.sin(x / 3 + c) * np.cos(y / (2 + c)) for c in range(3)]
    image = np.clip(np.stack(planes) + random.normal(0, 12, (3, 13, 17)), 0, 255).astype(np.uint8)
    image[:, :3, :3] = 90
    image[:, 0, 0], image[:, 0, 1] = 0, 255
    return torch.from_numpy(image)


def main():
    image = picture()
    with open(sys.argv[1], "wb") as out:
        def write(name, x):
            x = x.contiguous().numpy()
            kind = {"uint8": "u8", "float32": "f32"}[x.dtype.name]
            out.write(f"{name} {kind} {','.join(map(str, x.shape))}\n".encode() + x.tobytes())
        write("image", image)
        for name, case in CASES.items():
            write(name + ".u8", case(image))
            write(name + ".f32", case(image.to(torch.float32) / 255))


if __name__ == "__main__":
    main()
