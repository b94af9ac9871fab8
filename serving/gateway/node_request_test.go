package gateway

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"medusa/serving/agent/link"
)

// An agent reads requests as a server does: members are compared exactly and are there once, and a client that only ends its side gets its answer.
func TestNodeReadsRequests(t *testing.T) {
	f := startNode(t, nil)
	for _, row := range []struct{ path, body, want string }{
		{"/v1/completions", `{"model": "m0", "prompt": "x"}`, "m0 repeats x"},
		{"/v1/completions", `{"model": "m0", "model": "m0", "prompt": "x"}`, "duplicate_member"},
		{"/v1/completions", `{"Model": "m1", "model": "m1"}`, "the ticket is for"},
		{"/v1/messages", `[]`, `{"type":"error","error":{"type":"invalid_request_error"`},
		{"/sleep", `{"model": "m0"}`, "404 Not Found"},
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(f.urls[0], "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n%s: %s\r\n\r\n%s", row.path, len(row.body),
			link.HeaderTicket, f.secret.Ticket(row.path+row.body, "m0", time.Now().Add(time.Minute)), row.body)
		_ = c.(*net.TCPConn).CloseWrite()
		if text, _ := io.ReadAll(c); !strings.Contains(string(text), row.want) {
			t.Errorf("%s %s: %q, want %q", row.path, row.body, text, row.want)
		}
		_ = c.Close()
	}
}
