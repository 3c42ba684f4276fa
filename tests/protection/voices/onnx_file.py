"""Write a small ONNX model by hand, field by field of its protocol buffers (onnx.proto3).

The model takes log mel bands (batch, frames, 80) and returns mean squares of each band less their
mean: how much each band moves, which differs between the synthetic speakers.
"""

FLOAT, INTS, INT = 1, 7, 2


def _number(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def _field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    data = value.encode() if isinstance(value, str) else value
    return _number(number << 3 | 2) + _number(len(data)) + data


def _node(kind: str, inputs: list[str], output: str, *attributes: bytes) -> bytes:
    fields = [_field(1, each) for each in inputs] + [_field(2, output), _field(4, kind)]
    return b"".join(fields + [_field(5, each) for each in attributes])


def _ints(name: str, *values: int) -> bytes:
    return _field(1, name) + b"".join(_field(8, value) for value in values) + _field(20, INTS)


def _int(name: str, value: int) -> bytes:
    return _field(1, name) + _field(3, value) + _field(20, INT)


def _value(name: str, *shape: int | str) -> bytes:
    dimensions = [
        _field(1, _field(2, size) if isinstance(size, str) else _field(1, size)) for size in shape
    ]
    tensor = _field(1, FLOAT) + _field(2, b"".join(dimensions))
    return _field(1, name) + _field(2, _field(1, tensor))


def model(repeat: int = 1) -> bytes:
    """Return the file; `repeat` squares (and takes the root) that often, to make it slow."""
    nodes = []
    last = "bands"
    for turn in range(repeat):
        nodes += [_node("Mul", [last, last], f"s{turn}"), _node("Sqrt", [f"s{turn}"], f"r{turn}")]
        last = f"r{turn}"
    nodes += [
        _node("ReduceMean", [last], "mean", _ints("axes", 1), _int("keepdims", 0)),
        _node("ReduceMean", ["mean"], "level", _ints("axes", 1), _int("keepdims", 1)),
        _node("Sub", ["mean", "level"], "voice"),
    ]
    graph = b"".join(_field(1, node) for node in nodes) + _field(2, "tiny")
    graph += _field(11, _value("bands", 1, "frames", 80)) + _field(12, _value("voice", 1, 80))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13))
