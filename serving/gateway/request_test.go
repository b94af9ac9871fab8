package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"medusa/internal/apirequest"
)

// do sends a request and returns status and body of the answer.
func (f *port) do(t *testing.T, method, path, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+f.at+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Del("Content-Type")
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header
}

// Each path of the table goes to the engine of the model that the request names, with the body as it is.
func TestPaths(t *testing.T) {
	f := echoes(t, two, nil, mirror)
	for _, e := range apirequest.Endpoints() {
		path, body, kind := e.Path, `{"x":1, "model":"b"}`, "application/json"
		switch e.Model {
		case apirequest.Query:
			path, body, kind = path+"?model=b&x=1", "", ""
		case apirequest.Form:
			kind = "multipart/form-data; boundary=c"
			body = "--c\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nb\r\n--c--\r\n"
		case apirequest.Body:
		}
		status, text, _ := f.do(t, e.Method, path, body, "Content-Type", kind)
		if head := fmt.Sprintf("%s %s\nlength %d, transfer []\n", e.Method, path, len(body)); status != 200 || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, "\n\n"+body) {
			t.Errorf("%s: %d %q", e.Path, status, text)
		}
		wrong := strings.ReplaceAll(strings.ReplaceAll(body, `"b"`, `"c"`), "\r\nb\r\n", "\r\nc\r\n")
		if status, text, _ = f.do(t, e.Method, strings.Replace(path, "=b", "=c", 1), wrong, "Content-Type", kind); status != 404 || !strings.Contains(text, "does not exist") {
			t.Errorf("%s with an unknown model: %d %q", e.Path, status, text)
		}
	}
	for _, row := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/models", "", 200, `"created":1`}, {"GET", "/v1/models/org/a", "", 200, `{"id":"org/a","object":"model","created":1`},
		{"GET", "/v1/models/short", "", 200, `"id":"short"`}, {"GET", "/v1/models/c", "", 404, "model_not_found"}, {"GET", "/v1/models/", "", 404, "model_not_found"},
		{"GET", "/v1/completions", "", 404, "unknown_url"}, {"POST", "/sleep", `{"model":"b"}`, 404, "unknown_url"}, {"POST", "/v1/load_lora_adapter", `{"model":"b"}`, 404, "unknown_url"},
		// Engines differ in which of two members they take, and whether names fold case. So do readers in Go.
		{"POST", "/v1/completions", `{"model":"b","MODEL":"org/a"}`, 200, `{"model":"b","MODEL":"org/a"}`}, {"POST", "/v1/completions", `{"model":"b","model":"b"}`, 400, "duplicate_member"},
		{"POST", "/v1/completions", `{"Model":"b"}`, 400, "you must provide a model parameter"}, {"POST", "/v1/completions", `{"model":"B"}`, 404, "model_not_found"},
		{"POST", "/v1/completions", `{"model":"short","x":2}`, 200, `{"model":"org/a","x":2}`},
		{"POST", "/v1/messages", `{"model":"c"}`, 404, `{"type":"error","error":{"type":"not_found_error","message"`},
		{"POST", "/v1/messages", `[]`, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"the body is no JSON object"}}`},
		{"POST", "/v1/completions", `[]`, 400, `{"error":{"message":"the body is no JSON object","type":"invalid_request_error","param":null,"code":null}}`},
		{"POST", "/v1/completions", `{"model":5}`, 400, `"param":"model","code":"invalid_type"`},
		{"POST", "/v1/completions", "\xef\xbb\xbf" + `{"model":"b","t":NaN}`, 200, `{"model":"b","t":NaN}`},
	} {
		if status, text, _ := f.do(t, row.method, row.path, row.body); status != row.status || !strings.Contains(text, row.want) {
			t.Errorf("%s %s %s: %d %s; want %d %s", row.method, row.path, row.body, status, text, row.status, row.want)
		}
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded"} {
		if status, text, _ := f.do(t, "POST", "/v1/completions", `{"model":"b"}`, "Content-Type", kind); status != 415 || !strings.Contains(text, "unsupported_media_type") {
			t.Errorf("type %q: %d %s", kind, status, text)
		}
	}
	if status, text, _ := f.do(t, "GET", "/v1/realtime?model=b", "", "Connection", "Upgrade", "Upgrade", "WebSocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "x"); status != 501 || !strings.Contains(text, "websocket_unsupported") {
		t.Errorf("WebSocket: %d %s", status, text)
	}
}

// With a single model, a request need not name it: vLLM takes such a request.
func TestOnlyModel(t *testing.T) {
	f := echoes(t, one, nil, mirror)
	for _, body := range []string{`{"x":1}`, `{"model":null}`, `{"model":""}`} {
		if status, text, _ := f.do(t, "POST", "/v1/completions", body); status != 200 || !strings.HasSuffix(text, "\n"+body) {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
}

// Coded bodies reach the engine decoded and with their length, and so do chunked ones. Nothing that is for this server goes on.
func TestEncodings(t *testing.T) {
	f := echoes(t, one+"max_body: 5000000\n", nil, mirror)
	body := `{"model":"a","prompt":"` + strings.Repeat("word ", 100_000) + `"}`
	var zipped bytes.Buffer
	z, _ := zstd.NewWriter(&zipped)
	_, _ = io.WriteString(z, body)
	_ = z.Close()
	status, text, _ := f.do(t, "POST", "/v1/chat/completions", zipped.String(), "Content-Encoding", "zstd", "Authorization", "Bearer x", "X-Api-Key", "y", "traceparent", "00-1", "tracestate", "k=v")
	want := fmt.Sprintf("length %d, transfer []\nContent-Type: application/json\n", len(body))
	if status != 200 || !strings.Contains(text, want) || !strings.HasSuffix(text, body) || !strings.Contains(text, "Traceparent: 00-1\nTracestate: k=v\n") {
		t.Errorf("%d %.300s", status, text)
	}
	status, text, head := f.do(t, "POST", "/v1/messages", "{}", "Content-Encoding", "compress")
	if status != 415 || !strings.Contains(text, "invalid_request_error") || head.Get("Accept-Encoding") != "gzip, deflate, br, zstd" {
		t.Errorf("%d %s %v", status, text, head)
	}
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	for range 100 {
		_, _ = w.Write(make([]byte, 1<<20))
	}
	_ = w.Close()
	for _, row := range []struct {
		body, encoding string
		status         int
	}{
		{bomb.String(), "gzip", 413}, {zipped.String()[:zipped.Len()/2], "zstd", 400}, {"", "gzip", 400}, {"{}", "br", 400}, {strings.Repeat(" ", 5_000_000) + "{}", "", 413},
	} {
		headers := []string{"Content-Encoding", row.encoding}
		if row.encoding == "" {
			headers = nil
		}
		if status, text, _ := f.do(t, "POST", "/v1/completions", row.body, headers...); status != row.status || !strings.HasPrefix(text, `{"error":{"message":`) {
			t.Errorf("%.10q in %q: %d %.200s; want %d", row.body, row.encoding, status, text, row.status)
		}
	}
	if f.bodies.Used() != 0 {
		t.Errorf("%d bytes of bodies are lost", f.bodies.Used())
	}
	for _, row := range []struct{ name, request, want string }{
		{"chunked", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nTrailer: X\r\n\r\n5\r\n{\"mod\r\n7\r\nel\":\"a\"\r\n1\r\n}\r\n0\r\nX: 1\r\n\r\n",
			"length 13, transfer []\n"},
		{"HTTP/1.0", "POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"model\":\"a\"}", "length 13, transfer []\n"},
		{"expect", post("/v1/completions", `{"model":"a"}`, "Expect: 100-continue", "Upgrade: h2c", "HTTP2-Settings: x"), "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"},
		{"expect too much", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n", "HTTP/1.1 413 "},
		{"expect something else", post("/v1/completions", `{"model":"a"}`, "Expect: a miracle"), "HTTP/1.1 417 "},
		{"smuggled", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 13\r\nContent-Length: 14\r\n\r\n{\"model\":\"a\"}", "HTTP/1.1 400 "},
	} {
		if text := f.raw(t, row.request, false); !strings.Contains(text, row.want) || strings.Contains(text, "Expect:") || strings.Contains(text, "Upgrade:") {
			t.Errorf("%s: %q; want %q", row.name, text, row.want)
		}
	}
}

// A body far above the limit is refused with an answer that a client reads that sends all of its body first.
func TestLargeBodies(t *testing.T) {
	f := echoes(t, one+"max_body: 4000000\n", nil, mirror)
	body := `{"model":"a","prompt":"` + strings.Repeat("x", 20<<20) + `"}`
	chunked := fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for range 3 {
		for _, request := range []string{post("/v1/completions", body), chunked, post("/v1/nowhere", body), post("/v1/completions", body, "Content-Encoding: lzma")} {
			c := f.dial(t)
			if _, err := io.Copy(c, strings.NewReader(request)); err != nil { // all of it, before anything is read
				t.Fatalf("%.40q: %v", request, err)
			}
			answer, _ := io.ReadAll(c)
			if text := string(answer); !strings.HasPrefix(text, "HTTP/1.1 4") || !strings.HasSuffix(text, "}}\n") {
				t.Errorf("%.40q: %q", request, text)
			}
		}
	}
}

// HTTP/2 without TLS, as clients that know it before speak it.
func TestHTTP2(t *testing.T) {
	f := echoes(t, one, nil, mirror)
	p := &http.Protocols{}
	p.SetUnencryptedHTTP2(true)
	client := http.Client{Transport: &http.Transport{Protocols: p}}
	defer client.CloseIdleConnections()
	response, err := client.Post("http://"+f.at+"/v1/completions", "application/json", strings.NewReader(`{"model":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.ProtoMajor != 2 || response.StatusCode != 200 || !strings.HasSuffix(string(text), `{"model":"a"}`) {
		t.Errorf("%s %d %s, %v", response.Proto, response.StatusCode, text, err)
	}
}
