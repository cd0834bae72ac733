"""Models as ONNX graphs, of rows of numbers and of tables."""
