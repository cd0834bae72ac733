"""A fitted classifier for programs without Python: ONNX and C."""
