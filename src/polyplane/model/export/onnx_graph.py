"""An ONNX graph as it is written: operators of ai.onnx, one after the other."""

from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from polyplane.model.file import ModelError

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
    """Nodes so far, with the constants that they use; values go by names."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.n_bytes = 0

    def add(self, operator: str, *inputs: Any, result: str = "", **attributes: Any) -> str:
        """The name of what the operator makes of values, by name, and of constants."""
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        result = result or f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [result], **attributes))
        return result

    def cast(self, value: str, kind: type, result: str = "") -> str:
        """The value as numbers of a NumPy type."""
        code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return self.add("Cast", value, result=result, to=code)

    def _constant(self, values: Any) -> str:
        array = np.asarray(values)
        self.n_bytes += array.nbytes
        check_bytes(self.n_bytes)
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def made(self, name: str, inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]) -> Any:
        """The finished graph."""
        graph: GraphProto = helper.make_graph(self.nodes, name, inputs, outputs, self.constants)
        return graph
