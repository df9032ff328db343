"""Exchanges with the real API: openai/openai-dotnet, tests/SessionRecords (MIT), recorded in 2025 and 2026."""

SENT_MESSAGE = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "second item"}]}
"""ConversationItemEndpointsAcceptIncludeQuery: posted to /v1/conversations/{id}/items ..."""

STORED_MESSAGE = {
    "id": "msg_6a64d61300bc8197b2ee13bee46a49890f2c9ddbc598f953",
    "type": "message",
    "status": "completed",
    "content": [{"type": "input_text", "text": "second item"}],
    "role": "user",
}
"""... and listed."""

STORED_REPLY = {
    "id": "msg_0903dc172c433d83006a3f193bcd28819790de018a308e0dde",
    "type": "message",
    "status": "completed",
    "content": [
        {
            "type": "output_text",
            "annotations": [],
            "logprobs": [],
            "text": "Why did the scarecrow win an award?\n\nBecause he was outstanding in his field!",
        }
    ],
    "role": "assistant",
}
"""ResponseUsingConversations: the reply that /responses added to the conversation, as listed."""

STORED_CALL = {
    "id": "fc_0df7c3d8927b3a940068c9ef446a748194b8266e13adcc9781",
    "type": "function_call",
    "status": "completed",
    "arguments": '{"location":"San Francisco, CA"}',
    "call_id": "call_S2X9KuEJpYvFcF4hgv1XwM0j",
    "name": "get_weather_at_location",
}
STORED_OUTPUT = {
    "id": "fc_0df7c3d8927b3a940068c9ef44ea608194a973020c0bfc6625",
    "type": "function_call_output",
    "status": "completed",
    "call_id": "call_S2X9KuEJpYvFcF4hgv1XwM0j",
    "output": "22 celcius and windy",
}
"""Both as listed by /responses/{id}/input_items."""

STORED_DEVELOPER = {
    "id": "msg_03a6a74cc9197ebb0068c9ef30f5208197ad2a706183fb773d",
    "type": "message",
    "status": "completed",
    "content": [{"type": "input_text", "text": "Always begin your replies with 'Arr, matey'"}],
    "role": "developer",
}
"""As listed by /responses/{id}/input_items; sent there with string content."""

STORED = (STORED_MESSAGE, STORED_REPLY, STORED_CALL, STORED_OUTPUT, STORED_DEVELOPER)
