"""Exports of Nsight Systems in SQLite's format, read page by page."""
