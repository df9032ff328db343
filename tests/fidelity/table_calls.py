"""Calls of tools, their outputs, and reasoning."""

from __future__ import annotations

from openai.types.responses import ResponseFunctionToolCall

from .rows import Arrives, Omitted, RefusedByTheApi, done, part

CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{ "a" :1}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "22"}
SHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAA="}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
SEALED = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA="}
SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": "https://example.org"}]},
}
FILES = {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"]}
CODE = {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "container_id": "cntr_1"}
PAINTED = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAA="}
SHELL = {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls"], "timeout_ms": None}}
CLICK = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "call_1",
    "status": "completed",
    "action": {"type": "click", "button": "left", "x": 1, "y": 2},
    "pending_safety_checks": [],
}
LOCAL = {
    "type": "local_shell_call",
    "id": "lsh_1",
    "call_id": "call_1",
    "status": "completed",
    "action": {"type": "exec", "command": ["ls"], "env": {"LANG": "C"}, "user": None},
}
PATCH = {
    "type": "apply_patch_call",
    "call_id": "call_1",
    "status": "completed",
    "operation": {"type": "create_file", "path": "a.txt", "diff": "+\u00e9\n"},
}
LISTED = {
    "type": "mcp_list_tools",
    "id": "mcpl_1",
    "server_label": "s",
    "tools": [{"name": "t", "input_schema": {"type": "object", "default": None}, "annotations": None}],
}

CALLS = [
    Arrives("function_call", CALL, stored=done(CALL)),
    Arrives("function_call with an id", {**CALL, "id": "fc_1"}, sent=CALL, stored=done(CALL)),
    Arrives("function_call with nulls", {**CALL, "status": None, "namespace": None}, sent=CALL, stored=done(CALL)),
    Arrives("function_call in progress", {**CALL, "status": "in_progress"}),
    Arrives("function_call in a namespace", {**CALL, "namespace": "n"}, stored=done(CALL, namespace="n")),
    Arrives(
        "function_call as a model of the client, with a name that Python reserves",
        ResponseFunctionToolCall.model_validate({**CALL, "id": "fc_1", "async": True}),
        sent={"arguments": '{ "a" :1}', "call_id": "call_1", "name": "f", "type": "function_call", "async": True},
        stored=done(CALL, **{"async": True}),
    ),
    Arrives("function_call_output", OUTPUT, stored=done(OUTPUT)),
    Arrives("function_call_output with an id", {**OUTPUT, "id": "fc_1"}, sent=OUTPUT, stored=done(OUTPUT)),
    Arrives(
        "function_call_output in parts", {**OUTPUT, "output": [part("22")]}, stored=done(OUTPUT, output=[part("22")])
    ),
    Arrives(
        "function_call_output with an image and nulls",
        {**OUTPUT, "output": [{"type": "input_image", "image_url": "u", "file_id": None}]},
        sent={**OUTPUT, "output": [{"type": "input_image", "image_url": "u"}]},
        stored=done(OUTPUT, output=[{"type": "input_image", "image_url": "u"}]),
    ),
    Arrives("function_call_output of an empty list", {**OUTPUT, "output": []}, stored=done(OUTPUT, output=[])),
    Arrives(
        "function_call_output without a call_id",
        {"type": "function_call_output", "name": "f", "output": "22"},
        stored=done({"type": "function_call_output", "name": "f", "output": "22"}),
    ),
    Arrives("custom_tool_call", {"type": "custom_tool_call", "call_id": "call_1", "name": "f", "input": "\x00"}),
    Arrives("custom_tool_call_output", {"type": "custom_tool_call_output", "call_id": "call_1", "output": "x"}),
    Arrives(
        "custom_tool_call_output in parts",
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": [part("x")]},
    ),
    Arrives("reasoning by its id", THOUGHT),
    Arrives("reasoning by its id, with nulls", {**THOUGHT, "encrypted_content": None, "content": None}, sent=THOUGHT),
    Arrives("reasoning by its encrypted content", SEALED),
    Arrives("reasoning with a placeholder for an id", {**SEALED, "id": "__fake_id__"}, sent=SEALED),
    Arrives("reasoning with its text", {**THOUGHT, "content": [{"type": "reasoning_text", "text": "because"}]}),
    Omitted("reasoning with neither", {"type": "reasoning", "summary": []}),
    Omitted("reasoning with nulls for both", {**SEALED, "id": None, "encrypted_content": None}),
    Omitted("reasoning with a placeholder and nothing else", {"type": "reasoning", "id": "__fake_id__", "summary": []}),
    Arrives("web_search_call", SEARCH),
    Arrives("file_search_call", FILES, back={**FILES, "results": None}),
    Arrives(
        "file_search_call with results, which reading loses",
        {**FILES, "results": [{"file_id": "file_1", "score": 0.25, "text": "t"}]},
        back={**FILES, "results": None},
    ),
    Arrives("computer_call", CLICK),
    Arrives(
        "computer_call_output",
        {"type": "computer_call_output", "call_id": "call_1", "output": SHOT},
        stored=done({"type": "computer_call_output", "call_id": "call_1", "output": SHOT}),
    ),
    Arrives("code_interpreter_call with the nulls that must be there", {**CODE, "code": None, "outputs": None}),
    Arrives(
        "code_interpreter_call with outputs, which reading loses",
        {**CODE, "code": "1/3", "outputs": [{"type": "logs", "logs": "0.3"}]},
        back={**CODE, "code": "1/3", "outputs": None},
    ),
    Arrives("image_generation_call", PAINTED),
    Arrives("image_generation_call without a result", {**PAINTED, "status": "failed", "result": None}),
    Arrives("local_shell_call", LOCAL),
    Arrives(
        "local_shell_call_output",
        {"type": "local_shell_call_output", "id": "lsho_1", "output": "x"},
        stored=done({"type": "local_shell_call_output", "output": "x"}),
    ),
    Arrives("shell_call", SHELL, stored=done(SHELL)),
    Arrives(
        "shell_call with an environment, which reading loses",
        {**SHELL, "environment": {"type": "local"}},
        stored=done(SHELL, environment={"type": "local"}),
        back=done(SHELL),
    ),
    Arrives(
        "shell_call_output",
        {
            "type": "shell_call_output",
            "call_id": "call_1",
            "output": [{"stdout": "\x00", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        },
        stored=done(
            {
                "type": "shell_call_output",
                "call_id": "call_1",
                "output": [{"stdout": "\x00", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            }
        ),
    ),
    Arrives("apply_patch_call", PATCH),
    Arrives(
        "apply_patch_call_output",
        {"type": "apply_patch_call_output", "call_id": "call_1", "status": "failed", "output": "no such file"},
    ),
    Arrives("mcp_list_tools", LISTED),
    Arrives(
        "mcp_approval_request",
        {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "t", "arguments": "{}"},
    ),
    Arrives(
        "mcp_approval_response", {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False}
    ),
    Arrives(
        "mcp_call",
        {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "t", "arguments": "{}", "output": "x"},
        stored=done({"type": "mcp_call", "server_label": "s", "name": "t", "arguments": "{}", "output": "x"}),
    ),
    RefusedByTheApi(
        "a call_id of 65 characters", {**CALL, "call_id": "c" * 65}, "items[0].call_id", "string_above_max_length"
    ),
    RefusedByTheApi(
        "an id that is kept, with another prefix", {**SEARCH, "id": "xx_1"}, "items[0].id", "invalid_value"
    ),
    RefusedByTheApi(
        "an id that is kept, of 65 characters",
        {**SEARCH, "id": "ws_" + "1" * 62},
        "items[0].id",
        "string_above_max_length",
    ),
]
