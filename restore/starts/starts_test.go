package starts

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/internal/measure"
	"medusa/restore/status"
)

func started(scale float64) *status.Status {
	return &status.Status{Phases: []status.Phase{{Name: "weights", Began: 0}, {Name: "capture", Began: scale}, {Name: "ready", Began: 4 * scale}}}
}

func TestTable(t *testing.T) {
	modes := map[string]*measured{}
	for mode, scales := range map[string][]float64{Native: {1, 2, 3}, Restored: {0.5, 0.5, 0.5}} {
		modes[mode] = &measured{stages: map[string]measure.Times{}}
		for _, s := range scales {
			modes[mode].add(started(s))
		}
	}
	r := &Report{Device: "Simulated GPU", Machine: "m", Rounds: 3,
		Starts: []Start{modes[Native].summary(Native, modes[Native]), modes[Restored].summary(Restored, modes[Native])}}
	var b strings.Builder
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"weights 2000.0 ± 50% 500.0 ± 0%", "capture 6000.0 ± 50% 1500.0 ± 0%", "total 8000.0 ± 50% 2000.0 ± 0%",
		"native / this 1.00 ± 0.00 4.00 ± 2.00", "simulated"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// A start that cannot be measured gives an error instead of a number.
func TestRunRefuses(t *testing.T) {
	for script, want := range map[string]string{
		"exit 3": "exit status 3",
		"echo one; echo two; echo three >&2; exit 3": "exit status 3: three",
		"true": "does the engine support Medusa?",
		`echo '{"status":"restored","phases":[{},{}]}' >$MEDUSA_STATUS`: "the start was restored",
		`echo '{"status":"native","phases":[{}]}' >$MEDUSA_STATUS`:      "marked 1 phases",
	} {
		path := filepath.Join(t.TempDir(), "engine")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := Run(context.Background(), Options{Argv: []string{path}, Rounds: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", script, err, want)
		}
	}
}

// A server is measured until it is healthy, and then stopped.
func TestServer(t *testing.T) {
	dir := t.TempDir()
	flag := filepath.Join(dir, "up")
	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != `{"a":1}` {
				w.WriteHeader(http.StatusTeapot)
			}
			return
		}
		if _, err := os.Stat(flag); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer health.Close()
	script := `[ -n "$MEDUSA_BEGAN" ] && echo '{"status":"native","phases":[{"name":"import"},{"name":"ready","began":0.001}]}' >$MEDUSA_STATUS
touch ` + flag + `
exec sleep 1000`
	o := &Options{Argv: []string{"/bin/sh", "-c", script}, Health: health.URL, Request: health.URL, Body: `{"a":1}`}
	st, err := o.start(t.Context(), Mode{Name: Native}, filepath.Join(dir, "status.json"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, p := range st.Phases {
		names = append(names, p.Name)
		if i > 0 && p.Began < st.Phases[i-1].Began {
			t.Errorf("phases %+v", st.Phases)
		}
	}
	// The test's server listens from the beginning.
	if got := strings.Join(names, " "); got != "import ready listening healthy answered" && got != "import listening ready healthy answered" {
		t.Errorf("phases %s", got)
	}
	o.Body = "x"
	if _, err := o.start(t.Context(), Mode{Name: Native}, filepath.Join(dir, "status.json")); err == nil || !strings.Contains(err.Error(), "first request: 418") {
		t.Errorf("a request that is refused: %v", err)
	}
	if err := os.Remove(flag); err != nil {
		t.Fatal(err)
	}
	o.Argv[2] = "exit 4"
	if _, err := o.start(t.Context(), Mode{Name: Native}, filepath.Join(dir, "status.json")); err == nil || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("a server that ends: %v", err)
	}
}
