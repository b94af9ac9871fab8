// Package apierror is the error object of OpenAI's API, and of Anthropic's.
//
// In: an error that a client is to get. Out: its JSON, as the body of an answer or as an event of a stream. Fails: never. A write to a
// client that has left is not reported.
package apierror

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// The values of Kind.
const (
	Request        = "invalid_request_error"
	Authentication = "authentication_error"
	RateLimit      = "rate_limit_error"
	Server         = "server_error"
)

// Error is an error of the API. Message is for people, Code for programs.
type Error struct {
	Status  int
	Kind    string
	Code    string // empty: none
	Param   string // the field of the request that is wrong; empty: none
	Message string
	Retry   int // seconds until the client should try again; 0: unknown
}

func (e *Error) Error() string { return e.Message }

type object struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (e *Error) object() object {
	return object{e.Message, e.Kind, optional(e.Param), optional(e.Code)}
}

// Body is the object of OpenAI's API.
func (e *Error) Body() any {
	return struct {
		Error object `json:"error"`
	}{e.object()}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Write answers a request with the error, in OpenAI's form.
func (e *Error) Write(w http.ResponseWriter) { e.WriteAs(w, OpenAI) }

// WriteAs answers a request with the error.
func (e *Error) WriteAs(w http.ResponseWriter, form Form) {
	if e.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.Retry))
	}
	WriteJSON(w, e.Status, e.In(form))
}

// WriteJSON answers a request with an object.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
