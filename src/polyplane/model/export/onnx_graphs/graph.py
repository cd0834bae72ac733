"""An ONNX graph as it is written: one operator after the other."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from polyplane.model.format.model_file import ModelError

__all__ = ["Graph", "check_bytes"]

MOST_BYTES = (1 << 31) - (1 << 20)  # protobuf has no larger messages; the rest is for nodes


def check_bytes(n_bytes: int) -> None:
    """Refuse a model that no ONNX file can hold, before memory is spent on it."""
    if n_bytes > MOST_BYTES:
        raise ModelError(
            f"the model would take {n_bytes / 1e9:.1f} GB as ONNX, whose files end at 2 GB: fit "
            "with fewer columns, planes or support vectors"
        )


class Graph:
    """Nodes so far, with the constants that they use; values go by names, some of them taken."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self.domains: set[str] = set()  # of operators, beside ai.onnx
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.n_bytes = 0

    def add(self, operator: str, *inputs: Any, result: str = "", **attributes: Any) -> str:
        """The name of what the operator makes of values, by name, and of constants."""
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        result = result or self._free(f"{operator}_{len(self.nodes)}")
        self.domains |= {attributes["domain"]} if "domain" in attributes else set()
        node = helper.make_node(operator, names, [result], name=result, **attributes)
        self.nodes.append(node)  # named, for runtimes name what they fuse after it
        return result

    def cast(self, value: str, kind: type, result: str = "") -> str:
        """The value as numbers of a NumPy type."""
        code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return self.add("Cast", value, result=result, to=code)

    def _constant(self, values: Any) -> str:
        array = np.asarray(values)
        self.n_bytes += array.nbytes
        check_bytes(self.n_bytes)
        name = self._free(f"constant_{len(self.constants)}")
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def _free(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        return name

    def made(self, name: str, inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]) -> Any:
        """The finished graph."""
        graph: GraphProto = helper.make_graph(self.nodes, name, inputs, outputs, self.constants)
        return graph
