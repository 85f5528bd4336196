"""OTLP files and streams -> records, whatever wrote them.

`streams` finds the pieces of a file (lines or frames, compressed or not), `jsonform` and `protoform`
decode a piece into `analytics.dialects.base.Record` and `Point` values. Nothing here knows what a
record means.
"""
