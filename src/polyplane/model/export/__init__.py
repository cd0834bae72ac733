"""A fitted classifier for programs without Python: ONNX, C and SQL."""
