"""What is known of common agents' tools: their class, and whether a call of them changes files or state."""

from __future__ import annotations

from typing import Final, NamedTuple


class ToolInfo(NamedTuple):
    """Class (shell, read, edit, plan, poll, agent …) and whether a call changes state; None is unknown."""

    tool_class: str | None = None
    mutating: bool | None = None


class KnownTool(NamedTuple):
    """A tool: its name in telemetry, its class, whether it changes state (1, 0, -1), arguments to ignore."""

    name: str
    tool_class: str | None
    mutating: int
    ignored: frozenset[str]


UNKNOWN: Final = ToolInfo()
_KNOWN: Final = {
    ToolInfo("shell"): """
        shell Bash bash execute_bash run_shell_command exec_command local_shell run_in_terminal""",
    ToolInfo("read", False): """
        read Read Grep Glob LS NotebookRead WebFetch WebSearch read_file read_many_files list_directory
        list_dir glob grep grep_search search_file_content find_files file_search view view_image
        semantic_search codebase_search web_fetch web_search""",
    ToolInfo("edit", True): """
        edit Edit MultiEdit Write NotebookEdit write_file edit_file create_file replace apply_patch
        str_replace str_replace_editor insert_edit_into_file replace_string_in_file""",
    ToolInfo("plan", False): "plan TodoWrite TodoRead todo_write update_plan think exit_plan_mode",
    ToolInfo("poll", False): "poll BashOutput TaskOutput write_stdin get_terminal_output wait",
    ToolInfo("agent"): "agent Agent Task task spawn_agent",
    ToolInfo("browser"): "browser browser_navigate browser_click browser_snapshot",
}
TOOLS: Final[dict[str, ToolInfo]] = {name: info for info, words in _KNOWN.items() for name in words.split()}
