"""Relation vectors by ONNX Runtime: as float32, or several times as fast with weights and inputs of one byte."""
