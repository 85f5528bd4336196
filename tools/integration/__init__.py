"""The real bench: a Collector and a Prometheus, built once and cached, and what is run on them."""
