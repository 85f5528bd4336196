"""An adaptive per-turn tool-call cap for LLM agents, instrumented with OpenTelemetry."""
