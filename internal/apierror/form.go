package apierror

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Form is an API's way to write an error.
type Form int

// The forms.
const (
	OpenAI    Form = iota // completions, chats, and what vLLM adds to them
	Responses             // OpenAI's responses. Only events of a stream differ
	Anthropic             // Anthropic's messages
)

// In is the object in a form.
func (e *Error) In(form Form) any {
	if form != Anthropic {
		return e.Body()
	}
	type object struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return struct {
		Type  string `json:"type"`
		Error object `json:"error"`
	}{"error", object{anthropicKind(e.Status), e.Message}}
}

// anthropicKind is the type that Anthropic's API documents for a status.
func anthropicKind(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable:
		return "overloaded_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// Event is the error as an event of a stream.
func (e *Error) Event(form Form) []byte {
	switch form {
	case Responses:
		// OpenAI's documentation has the first members. Its packages raise an exception at "error" alone.
		data, _ := json.Marshal(struct {
			Type     string  `json:"type"`
			Code     *string `json:"code"`
			Message  string  `json:"message"`
			Param    *string `json:"param"`
			Sequence int     `json:"sequence_number"`
			Error    object  `json:"error"`
		}{"error", optional(e.Code), e.Message, optional(e.Param), 0, e.object()})
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", data)
	case Anthropic:
		data, _ := json.Marshal(e.In(form))
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", data)
	}
	data, _ := json.Marshal(e.Body())
	return fmt.Appendf(nil, "data: %s\n\n", data)
}
