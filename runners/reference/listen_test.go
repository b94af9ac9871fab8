package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"medusa/test/calllog"
	"medusa/test/testenv"
)

// server is an engine that serves.
type server struct {
	url     string
	process *os.Process
	ended   chan error
	stderr  *bytes.Buffer
}

// patience bounds the time that a loaded machine may need.
const patience = 2 * time.Minute

// serving starts an engine, and waits for its address.
func serving(t *testing.T, variables []string, args ...string) *server {
	t.Helper()
	return servingAs(t, variables, []string{os.Args[0]}, args...)
}

// servingAs is serving, by the command that starts the engine.
func servingAs(t *testing.T, variables, command []string, args ...string) *server {
	t.Helper()
	cmd := exec.Command(command[0], slices.Concat(command[1:], []string{"serve", "--listen", "127.0.0.1:0"}, args)...)
	cmd.Env = append(testenv.Simulated(t, variables...), asEngine+"=1", "VBLAS_LIB="+testenv.Path(t, "build/lib/libvendorblas.so"))
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{process: cmd.Process, ended: make(chan error, 1), stderr: &bytes.Buffer{}}
	t.Cleanup(func() { _ = s.process.Kill() })
	lines := bufio.NewScanner(out)
	for s.url == "" && lines.Scan() {
		fmt.Fprintln(s.stderr, lines.Text())
		if _, url, found := strings.Cut(lines.Text(), " on http"); found && strings.HasPrefix(lines.Text(), "serving") {
			s.url = "http" + url
		}
	}
	go func() {
		for lines.Scan() {
			fmt.Fprintln(s.stderr, lines.Text())
		}
		s.ended <- cmd.Wait()
	}()
	if s.url == "" {
		t.Fatalf("the engine does not serve: %v\n%s", <-s.ended, s.stderr)
	}
	return s
}

// stop ends the engine by SIGTERM, which has to be clean.
func (s *server) stop(t *testing.T) {
	t.Helper()
	_ = s.process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		if err != nil {
			t.Errorf("after SIGTERM: %v\n%s", err, s.stderr)
		}
	case <-time.After(patience):
		t.Fatal("the engine does not end")
	}
}

// reply is an answer, as far as the tests look at it.
type reply struct {
	Choices []struct {
		Text         string `json:"text"`
		TokenIDs     []int  `json:"token_ids"`
		FinishReason string `json:"finish_reason"`
		Delta        struct{ Content string }
		Message      struct{ Content string }
	} `json:"choices"`
	Usage struct {
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
	Error struct{ Message, Type, Code string } `json:"error"`
}

func (s *server) post(ctx context.Context, path string, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(r)
}

// ask returns the text and the tokens of a completion.
func (s *server) ask(path string, body map[string]any) (text string, ids []int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	response, err := s.post(ctx, path, body)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return "", nil, fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	if body["stream"] != true {
		var r reply
		if err := json.NewDecoder(response.Body).Decode(&r); err != nil {
			return "", nil, err
		}
		if r.Usage.CompletionTokens != len(r.Choices[0].TokenIDs) {
			return "", nil, fmt.Errorf("usage %d for %d tokens", r.Usage.CompletionTokens, len(r.Choices[0].TokenIDs))
		}
		return r.Choices[0].Text + r.Choices[0].Message.Content, r.Choices[0].TokenIDs, nil
	}
	done := false
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		if done = data == "[DONE]"; done {
			break
		}
		var r reply
		if err := json.Unmarshal([]byte(data), &r); err != nil {
			return "", nil, err
		}
		if len(r.Choices) == 0 {
			return "", nil, fmt.Errorf("event %s", data)
		}
		text += r.Choices[0].Text + r.Choices[0].Delta.Content
		ids = append(ids, r.Choices[0].TokenIDs...)
	}
	if !done {
		return "", nil, fmt.Errorf("the stream ends without [DONE]")
	}
	return text, ids, nil
}

var served = []string{"--model", "models/tiny", "--batch-sizes", "1,2,4,8", "--kv-cache-bytes", "1200000"}

// Twenty clients at once get, streamed and not, the tokens that the same prompts get alone. Clients that leave keep no blocks,
// and SIGTERM ends the engine cleanly.
func TestServe(t *testing.T) {
	const clients, most = 20, 40
	prompts := make([]string, clients)
	args := append([]string{"generate", "--max-tokens", fmt.Sprint(most)}, served...)
	for i := range prompts {
		prompts[i] = strings.Join(strings.Fields("In the beginning God created the heaven and the earth and the earth was without form")[i%11:], " ") + fmt.Sprint(" ", i)
		args = append(args, "--prompt", prompts[i])
	}
	want := result[struct {
		Answers []answer `json:"answers"`
	}](t, nil, args...).Answers
	s := serving(t, nil, append(served, "--served-model-name", "bible")...)
	var all sync.WaitGroup
	for i, w := range want {
		all.Go(func() {
			text, ids, err := s.ask("/v1/completions", map[string]any{"model": "bible", "prompt": w.Prompt, "max_tokens": most,
				"temperature": 0, "stream": i%2 == 0, "return_token_ids": true})
			if err != nil || text != w.Text || !slices.Equal(ids, w.Tokens) {
				t.Errorf("client %d: %v\n got %q %v\nwant %q %v", i, err, text, ids, w.Text, w.Tokens)
			}
		})
		all.Go(func() { // leaves behind the first piece
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			response, err := s.post(ctx, "/v1/completions", map[string]any{"model": "bible", "prompt": w.Prompt, "max_tokens": 200,
				"stream": true, "ignore_eos": true})
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if _, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	// The KV cache holds few sequences of full length. If clients that left kept their blocks, this would never end.
	for range 3 {
		if _, ids, err := s.ask("/v1/completions", map[string]any{"model": "bible", "prompt": "And", "max_tokens": 250, "ignore_eos": true,
			"return_token_ids": true}); err != nil || len(ids) != 250 {
			t.Fatalf("%d tokens, %v", len(ids), err)
		}
	}
	s.stop(t)
}

// An engine that sleeps gives the memory of weights and KV cache back, refuses requests, and answers as before once it is awake: from
// the host's copy of the weights, and from the checkpoint.
func TestServeSleeps(t *testing.T) {
	s := serving(t, nil, append(served, "--enable-sleep-mode")...)
	ask := func() string {
		t.Helper()
		text, _, err := s.ask("/v1/completions", map[string]any{"model": "tiny", "prompt": "In the beginning", "max_tokens": 20, "return_token_ids": true})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	post := func(path string, want int) {
		t.Helper()
		response, err := s.post(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Fatalf("%s: status %s", path, response.Status)
		}
	}
	sleeping := func() string {
		t.Helper()
		response, err := http.Get(s.url + "/is_sleeping")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return strings.TrimSpace(string(text))
	}
	want := ask()
	for level := 1; level <= 2; level++ {
		post(fmt.Sprintf("/sleep?level=%d", level), http.StatusOK)
		if got := sleeping(); got != `{"is_sleeping":true}` {
			t.Error(got)
		}
		if _, _, err := s.ask("/v1/completions", map[string]any{"model": "tiny", "prompt": "And"}); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("a sleeping engine answers: %v", err)
		}
		post("/wake_up", http.StatusOK)
		if got := ask(); got != want || sleeping() != `{"is_sleeping":false}` {
			t.Errorf("after level %d: %q, want %q", level, got, want)
		}
	}
	post("/sleep?level=3", http.StatusBadRequest)
	post("/sleep", http.StatusOK) // and ends asleep
	s.stop(t)
	if n := strings.Count(s.stderr.String(), "bytes of device memory are free"); n != 3 || strings.Contains(s.stderr.String(), ": 0 bytes") {
		t.Errorf("%d times asleep\n%s", n, s.stderr)
	}
}

// A chat is the transcript's completion, and the same streamed.
func TestServeChat(t *testing.T) {
	s := serving(t, nil, served...)
	messages := []map[string]any{{"role": "system", "content": "In the beginning"},
		{"role": "user", "content": []map[string]string{{"type": "text", "text": "God "}, {"type": "text", "text": "created"}}}}
	want, _, err := s.ask("/v1/completions", map[string]any{"model": "tiny", "prompt": "system: In the beginning\nuser: God created\nassistant:",
		"max_tokens": 12, "return_token_ids": true})
	if err != nil || want == "" {
		t.Fatal(want, err)
	}
	for _, stream := range []bool{false, true} {
		got, ids, err := s.ask("/v1/chat/completions", map[string]any{"model": "tiny", "messages": messages, "max_tokens": 12, "stream": stream,
			"return_token_ids": true})
		if err != nil || got != want || len(ids) != 12 {
			t.Errorf("stream %v: %q, want %q: %v", stream, got, want, err)
		}
	}
	s.stop(t)
}

// Requests that cannot be answered get OpenAI's error object, and do not affect other requests.
func TestServeRefuses(t *testing.T) {
	s := serving(t, nil, served...)
	ok := func(more string) string { return `{"model": "tiny", "prompt": "And"` + more + `}` }
	for _, row := range []struct {
		name, path, body string
		status           int
		want             string
	}{
		{"no JSON", "/v1/completions", "{", 400, "read body"},
		{"another model", "/v1/completions", `{"model": "gpt", "prompt": "x"}`, 404, "model_not_found"},
		{"sampling", "/v1/completions", ok(`, "temperature": 0.7`), 400, "greedy"},
		{"several answers", "/v1/completions", ok(`, "n": 2`), 400, "n is not supported"},
		{"stop words", "/v1/completions", ok(`, "stop": ["x"]`), 400, "stop is not supported"},
		{"no prompt", "/v1/completions", `{"model": "tiny"}`, 400, "prompt is neither"},
		{"empty prompt", "/v1/completions", `{"model": "tiny", "prompt": ""}`, 400, "empty"},
		{"no tokens", "/v1/completions", ok(`, "max_tokens": 0`), 400, "max_tokens is 0"},
		{"too many tokens", "/v1/completions", ok(`, "max_tokens": 1000000000`), 400, "context_length_exceeded"},
		{"a long prompt", "/v1/completions", `{"model": "tiny", "prompt": "` + strings.Repeat("And ", 400) + `"}`, 400, "context_length_exceeded"},
		{"an unknown token", "/v1/completions", `{"model": "tiny", "prompt": [512]}`, 400, "vocabulary"},
		{"a large body", "/v1/completions", ok(`, "user": "` + strings.Repeat("x", 5<<20) + `"`), 413, "request_too_large"},
		{"no messages", "/v1/chat/completions", `{"model": "tiny", "messages": []}`, 400, "no messages"},
		{"a picture", "/v1/chat/completions", `{"model": "tiny", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`, 400, "message 0"},
		{"another endpoint", "/v1/embeddings", ok(""), 404, "unknown_url"},
		{"what asks for nothing", "/v1/completions", ok(`, "n": 1, "temperature": 0, "stop": null, "seed": 3, "logit_bias": {}`), 200, "text_completion"},
	} {
		response, err := http.Post(s.url+row.path, "application/json", strings.NewReader(row.body))
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		data, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		var r reply
		if err := json.Unmarshal(data, &r); err != nil || response.StatusCode != row.status || !strings.Contains(string(data), row.want) {
			t.Errorf("%s: status %d, %s; want %d and %q", row.name, response.StatusCode, data, row.status, row.want)
		}
		if row.status != 200 && (r.Error.Message == "" || r.Error.Type == "") {
			t.Errorf("%s: error %+v", row.name, r.Error)
		}
	}
	s.stop(t)
}

// A restored engine has its graphs again after each sleep, at either level, without a capture, and answers as before.
func TestRestoredSleeps(t *testing.T) {
	dir := t.TempDir()
	artifact, calls := filepath.Join(dir, "a.medusa"), filepath.Join(dir, "calls")
	args := []string{"--model", "models/tiny", "--batch-sizes", "1,2", "--max-model-len", "64", "--kv-cache-bytes", "12000000", "--enable-sleep-mode"}
	if p := underMedusa(t, nil, []string{"materialize", "-o", artifact}, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...); p.code != 0 {
		t.Fatalf("materialize ends with exit code %d\n%s", p.code, p.stderr)
	}
	s := servingAs(t, []string{"SIMGPU_CALL_LOG=" + calls},
		[]string{testenv.Path(t, "build/medusa"), "restore", "--strict", artifact, "--", os.Args[0]}, args...)
	ask := func() string {
		t.Helper()
		text, _, err := s.ask("/v1/completions", map[string]any{"model": "tiny", "prompt": "In the beginning", "max_tokens": 20, "return_token_ids": true})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const cycles = 4
	want := ask()
	for i := range cycles {
		for _, path := range []string{fmt.Sprintf("/sleep?level=%d", 1+i%2), "/wake_up"} {
			response, err := s.post(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Fatalf("%s: status %s", path, response.Status)
			}
		}
		if got := ask(); got != want {
			t.Errorf("after sleep %d: %q, want %q", i, got, want)
		}
	}
	s.stop(t)
	log, err := calllog.Read(calls)
	if err != nil {
		t.Fatal(err)
	}
	if n := calllog.Count(log.Entries, "cuStreamBeginCapture"); n != 0 {
		t.Errorf("%d captures", n)
	}
	// Each answer takes a prefill and 19 steps with a graph. Each sleep and each wake replay every graph once.
	if n := calllog.Count(log.Between("ready", ""), "cuGraphLaunch"); n < 19*(1+cycles) {
		t.Errorf("%d graph launches after ready, want %d at least", n, 19*(1+cycles))
	}
}
