"""Spans, in the forms in which OpenTelemetry and its neighbors write them."""
