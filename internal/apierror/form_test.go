package apierror

import "testing"

// Each API documents its own error: Anthropic's "Errors" and "Streaming messages", OpenAI's "Responses: streaming events".
func TestForms(t *testing.T) {
	e := &Error{Status: 502, Kind: Server, Code: "engine_failed", Message: "it failed"}
	for _, row := range []struct {
		form Form
		want string
	}{
		{OpenAI, `data: {"error":{"message":"it failed","type":"server_error","param":null,"code":"engine_failed"}}` + "\n\n"},
		{Responses, "event: error\n" + `data: {"type":"error","code":"engine_failed","message":"it failed","param":null,"sequence_number":0,` +
			`"error":{"message":"it failed","type":"server_error","param":null,"code":"engine_failed"}}` + "\n\n"},
		{Anthropic, "event: error\n" + `data: {"type":"error","error":{"type":"api_error","message":"it failed"}}` + "\n\n"},
	} {
		if got := string(e.Event(row.form)); got != row.want {
			t.Errorf("form %d: %q, want %q", row.form, got, row.want)
		}
	}
	for status, want := range map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
		415: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 503: "overloaded_error", 504: "timeout_error"} {
		if got := anthropicKind(status); got != want {
			t.Errorf("status %d: %s, want %s", status, got, want)
		}
	}
}
