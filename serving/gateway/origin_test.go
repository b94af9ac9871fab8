package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A page of a foreign site reaches nothing: neither under a name that its owner lets point to this machine, nor with a request that browsers send
// without asking. Programs are not hindered.
func TestForeignPages(t *testing.T) {
	f := echoes(t, one+"hosts: [gpu.example]\ncors: ['https://chat.example']\n", nil, mirror)
	const site, mine = "https://evil.example", "http://localhost"
	for _, row := range []struct {
		name, host string
		headers    string
		status     int
	}{
		{"a program", "localhost:8080", "", 200}, {"an address", "127.0.0.1", "", 200}, {"another address of this machine", "127.0.0.2:1", "", 200}, {"IPv6", "[::1]:80", "", 200},
		{"a name below localhost", "a.localhost", "", 200}, {"a name of the file", "GPU.example:80", "", 200},
		{"a name that was rebound", "evil.example", "", 403}, {"like localhost", "localhost.evil.example", "", 403}, {"another address", "10.0.0.1", "", 403}, {"no name", "", "", 403 - 203},
		{"a page of another site", "localhost", "Origin: " + site + "\r\nSec-Fetch-Site: cross-site\r\n", 403}, {"an old browser", "localhost", "Origin: " + site + "\r\n", 403},
		{"a page in a sandbox", "localhost", "Origin: null\r\n", 403}, {"a page of another port", "localhost", "Origin: http://localhost:99\r\nSec-Fetch-Site: same-site\r\n", 403},
		{"the server's own page", "localhost", "Origin: " + mine + "\r\nSec-Fetch-Site: same-origin\r\n", 200}, {"a page that the file allows", "localhost", "Origin: https://chat.example\r\nSec-Fetch-Site: cross-site\r\n", 200},
	} {
		for _, path := range []string{"/v1/completions", "/models/a/unload"} {
			body := `{"model":"a"}`
			text := f.raw(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n%s", path, row.host, len(body), row.headers, body), false)
			if !strings.HasPrefix(text, fmt.Sprintf("HTTP/1.1 %d ", row.status)) || row.status == 403 && !strings.Contains(text, `"code":"foreign_host"`) && !strings.Contains(text, `"code":"cross_origin"`) {
				t.Errorf("%s at %s: %.200q; want %d", row.name, path, text, row.status)
			}
		}
	}
	for _, path := range []string{"/", "/events", "/v1/models", "/metrics", "/health"} {
		if text := f.raw(t, "GET "+path+" HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", false); !strings.HasPrefix(text, "HTTP/1.1 403 ") {
			t.Errorf("%s under a foreign name: %.100q", path, text)
		}
	}
	ask := func(origin string) string {
		return f.raw(t, "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nOrigin: "+origin+"\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,x-stainless-os\r\n\r\n", false)
	}
	if text := ask("https://chat.example"); !strings.HasPrefix(text, "HTTP/1.1 204 ") || !strings.Contains(text, "Access-Control-Allow-Origin: https://chat.example\r\n") || !strings.Contains(text, "Access-Control-Allow-Headers: authorization,x-stainless-os\r\n") {
		t.Errorf("%q", text)
	}
	if text := ask(site); strings.Contains(text, "Access-Control-Allow") {
		t.Errorf("%q", text)
	}
}

// Without a list in the file no page of another site is let in. A star lets all in. A server that other machines reach has names that it does not know.
func TestOrigins(t *testing.T) {
	for _, row := range []struct {
		more, host, origin string
		status             int
	}{
		{"", "localhost", "https://chat.example", 403}, {"cors: ['*']\n", "localhost", "https://chat.example", 200},
		{"listen: 0.0.0.0:8080\n", "gpu.example", "", 200}, {"listen: 0.0.0.0:8080\n", "gpu.example", "https://chat.example", 403}, {"listen: localhost:8080\n", "gpu.example", "", 403},
		{"listen: '[::1]:8080'\n", "gpu.example", "", 403}, {"listen: ':8080'\n", "gpu.example", "", 200},
	} {
		f := echoes(t, one+row.more, nil, mirror)
		headers := []string{}
		if row.origin != "" {
			headers = append(headers, "Origin: "+row.origin)
		}
		text := f.raw(t, strings.Replace(post("/v1/completions", `{"model":"a"}`, headers...), "Host: localhost", "Host: "+row.host, 1), false)
		if !strings.HasPrefix(text, fmt.Sprintf("HTTP/1.1 %d ", row.status)) || (row.status == 200 && row.origin != "") != strings.Contains(text, "Access-Control-Allow-Origin: "+row.origin) && row.origin != "" {
			t.Errorf("%+v: %q", row, text)
		}
	}
	for _, wrong := range []string{"chat.example", "https://chat.example/path", ""} {
		if _, err := parse("serve.yaml", []byte(one+"cors: ['"+wrong+"']\n")); err == nil || !strings.Contains(err.Error(), "invalid origin") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// Keys are taken as vLLM and Anthropic's API take them.
func TestFormsOfKeys(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("right\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := echoes(t, one+"keys: "+keys+"\n", nil, mirror)
	for _, row := range []struct {
		name, value string
		status      int
	}{
		{"Authorization", "Bearer right", 200}, {"Authorization", "bearer right", 200}, {"Authorization", "BEARER  right ", 200}, {"X-Api-Key", "right", 200},
		{"Authorization", "right", 401}, {"Authorization", "Basic right", 401}, {"Authorization", "Bearer Right", 401}, {"Authorization", "Bearer", 401}, {"Authorization", "Bearer right x", 401},
		{"Authorization", "Bearerright", 401}, {"X-Api-Key", "", 401}, {"X-Other", "right", 401},
	} {
		if status, text, head := f.do(t, "POST", "/v1/messages", `{"model":"a"}`, row.name, row.value); status != row.status || status == 401 && (!strings.Contains(text, `"type":"authentication_error"`) || head.Get("WWW-Authenticate") != "Bearer") || strings.Contains(text, "right") {
			t.Errorf("%s %q: %d %s", row.name, row.value, status, text)
		}
	}
}

// The access log has a line of JSON for each request. The identifier is the client's if it has one.
func TestAccessLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.jsonl")
	text := one + "access_log: " + path + "\n"
	f := echoes(t, text, nil, mirror)
	status, answer, head := f.do(t, "POST", "/v1/completions", `{"model":"a"}`, "X-Request-Id", "mine-1", "traceparent", "00-ab")
	if status != 200 || head.Get("X-Request-Id") != "mine-1" || len(head.Values("X-Request-Id")) != 1 || !strings.Contains(answer, "X-Request-Id: mine-1\n") {
		t.Errorf("%d %s %v", status, answer, head)
	}
	_, answer, head = f.do(t, "POST", "/v1/completions", `{"model":"x"}`, "X-Request-Id", "two words")
	if id := head.Get("X-Request-Id"); !isID(id) || strings.Contains(id, " ") {
		t.Errorf("%q %s", id, answer)
	}
	lines := func(of string) (list []visit) {
		data, _ := os.ReadFile(of)
		for line := range strings.Lines(string(data)) {
			var v visit
			if err := json.Unmarshal([]byte(line), &v); err != nil || strings.Contains(line, "ResponseWriter") {
				t.Errorf("%q: %v", line, err)
			}
			list = append(list, v)
		}
		return list
	}
	soon(t, "two lines", func() bool { return len(lines(path)) == 2 })
	if l := lines(path); l[0].ID != "mine-1" || l[0].Model != "a" || l[0].Status != 200 || l[0].Path != "/v1/completions" || l[0].In != 13 || l[0].Out == 0 || l[0].Parent != "00-ab" || l[0].Took <= 0 ||
		l[1].ID != head.Get("X-Request-Id") || l[1].Status != 404 || l[1].Model != "" {
		t.Errorf("%+v", l)
	}
	// A reload goes on in a new file of the same name.
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	s, err := parse("serve.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Reload(s); err != nil {
		t.Fatal(err)
	}
	f.do(t, "GET", "/v1/models", "")
	soon(t, "a line in the new file", func() bool { return len(lines(path)) == 1 })
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
