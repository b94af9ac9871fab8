package gateway

import (
	"fmt"
	"net/http"
	"strconv"

	"medusa/internal/apierror"
)

// The headers with which a client, or a gateway in front, describes a request further.
const (
	headerFlow     = "X-Gateway-Inference-Fairness-ID" // of the Gateway API inference extension
	headerDeadline = "X-Medusa-Deadline"               // seconds
)

// maxFlowName bounds the name of a flow in bytes.
const maxFlowName = 128

// IsWish reports whether Wishes reads a header.
func IsWish(name string) bool { return name == headerFlow || name == headerDeadline }

// Wishes reads the headers of a request: its flow, and its deadline in seconds or 0.
func Wishes(h http.Header) (flow string, deadline float64, err error) {
	bad := func(name, format string, args ...any) error {
		return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Code: "invalid_header", Param: name, Message: name + " " + fmt.Sprintf(format, args...)}
	}
	for _, name := range []string{headerFlow, headerDeadline} {
		if n := len(h.Values(name)); n > 1 {
			return "", 0, bad(name, "is there %d times", n)
		}
	}
	if flow = h.Get(headerFlow); len(flow) > maxFlowName {
		return "", 0, bad(headerFlow, "has %d bytes, at most %d are allowed", len(flow), maxFlowName)
	}
	if text := h.Get(headerDeadline); text != "" {
		deadline, err = strconv.ParseFloat(text, 64)
		// mutant: deadlines of clients
		if err != nil || !(deadline > 0 && deadline <= maxSeconds) {
			return "", 0, bad(headerDeadline, "is %q, a number of seconds above 0 is needed", text)
		}
	}
	return flow, deadline, nil
}
