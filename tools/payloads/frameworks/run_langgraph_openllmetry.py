# requires: opentelemetry-instrumentation-langchain==0.62.4 langgraph==1.2.24 langchain==1.5.2
# requires: opentelemetry-exporter-otlp-proto-http
"""LangGraph's ready-made agent under OpenLLMetry's LangChain instrumentation."""

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
LangchainInstrumentor().instrument(tracer_provider=provider)


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


@tool
def search(q: str) -> str:
    """Search."""
    return "found " + q


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def broken() -> str:
    """Fail."""
    raise ValueError("it broke")


def calls(*wanted: tuple[str, dict]) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": n, "args": a, "id": f"c{next(ids)}"} for n, a in wanted])


ids = iter(range(1, 100))
replies = [
    calls(("search", {"q": "x"})),
    calls(("search", {"q": "x"}), ("add", {"a": 1, "b": 2})),
    AIMessage("done"),
    calls(("search", {"q": "x"})),
    AIMessage("done"),
    calls(("broken", {})),
]
agent = create_agent(Scripted(messages=iter(replies)), tools=[search, add, broken], name="helper")
for prompt in ("one", "two", "three"):
    try:
        agent.invoke({"messages": [("user", prompt)]}, config={"metadata": {"thread_id": "the-thread"}})
    except ValueError as error:
        print("ended by", error)
provider.shutdown()
