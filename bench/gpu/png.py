"""Just enough of PNG to compare two pictures that ComfyUI saved: 8 bits a channel, not interlaced."""
import struct
import zlib


def chunks(data):
    at = 8
    while at + 8 <= len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + size]
        at += 12 + size


def texts(data):
    return {name.decode("latin-1"): text.decode("latin-1")
            for kind, body in chunks(data) if kind == b"tEXt"
            for name, _, text in [body.partition(b"\0")]}


def pixels(data):
    """(width, height, bytes of all rows)."""
    packed = b""
    width = height = channels = 0
    for kind, body in chunks(data):
        if kind == b"IHDR":
            width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            channels = {2: 3, 6: 4}.get(colour)
            if bits != 8 or interlaced or not channels:
                raise ValueError("not a picture as ComfyUI saves them")
        elif kind == b"IDAT":
            packed += body
    raw = zlib.decompress(packed)
    stride = width * channels
    rows = []
    above = bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        above = unfiltered(raw[start], bytearray(raw[start + 1:start + 1 + stride]), above, channels)
        rows.append(bytes(above))
    return width, height, b"".join(rows)


def unfiltered(kind, row, above, step):
    if kind == 2:
        return bytearray((x + b) & 255 for x, b in zip(row, above))
    if kind:
        for i in range(len(row)):
            left = row[i - step] if i >= step else 0
            if kind == 1:
                add = left
            elif kind == 3:
                add = (left + above[i]) // 2
            else:
                add = paeth(left, above[i], above[i - step] if i >= step else 0)
            row[i] = (row[i] + add) & 255
    return row


def paeth(left, above, corner):
    guess = left + above - corner
    distances = abs(guess - left), abs(guess - above), abs(guess - corner)
    return (left, above, corner)[distances.index(min(distances))]


def difference(one, two):
    """(mean, largest) difference of two pictures as `pixels` gives them, of 255."""
    if one[:2] != two[:2]:
        raise ValueError("the pictures have different sizes")
    total = largest = 0
    for a, b in zip(one[2], two[2]):
        apart = a - b if a > b else b - a
        total += apart
        if apart > largest:
            largest = apart
    return total / len(one[2]), largest
