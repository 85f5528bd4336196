# requires: mcp==2.3.0 opentelemetry-exporter-otlp-proto-http
"""The MCP SDK's own spans: a tool called through a client inside a framework's span, and once without it."""

import asyncio

from mcp.client.client import Client
from mcp.server import MCPServer
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("a framework")
server = MCPServer("demo")


@server.tool()
def search(q: str) -> str:
    """Search."""
    return "found " + q


async def main() -> None:
    async with Client(server) as client:
        run = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "helper",
            "session.id": "mcp-session",
        }
        with tracer.start_as_current_span("invoke_agent helper", attributes=run):
            for number in range(2):
                call = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "search",
                    "gen_ai.tool.call.id": f"c{number}",
                    "gen_ai.tool.call.arguments": '{"q": "x"}',
                    "gen_ai.tool.call.result": "found x",
                }
                with tracer.start_as_current_span("execute_tool search", attributes=call):
                    await client.call_tool("search", {"q": "x"})
            await client.call_tool("search", {"q": "x"})  # by hand: no span of the framework's around it


asyncio.run(main())
provider.shutdown()
