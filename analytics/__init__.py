"""Loads exported telemetry into DuckDB, validates the thresholds and writes the weekly report."""
