package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/restore/status"
	"medusa/serving/agent"
)

// starting is an engine that leaves an account of its start, and then has started or not.
type starting struct {
	agent.Engine
	file string
	says *status.Status
	err  error
}

func (s *starting) Start(context.Context) error {
	if s.says != nil {
		if err := status.Write(s.file, s.says); err != nil {
			return err
		}
	}
	return s.err
}

func (s *starting) Stop() {}

func TestStartsAreCounted(t *testing.T) {
	all := &starts{}
	for i, row := range []struct {
		model    string
		artifact bool
		says     *status.Status
		err      error
	}{
		{"a", true, &status.Status{Status: status.Restored}, nil},
		{"a", true, &status.Status{Status: status.Restored}, nil},
		{"a", true, &status.Status{Status: status.Native, Reason: "incompatible", Detail: "gpu.name differs"}, nil},
		{"a", true, nil, nil},
		{"b", false, nil, nil},
		{"b", false, nil, errors.New("no memory")},
	} {
		file := ""
		if row.artifact {
			file = filepath.Join(t.TempDir(), fmt.Sprint(i), "status.json")
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		e := &counted{&starting{file: file, says: row.says, err: row.err}, row.model, "0", file, all}
		if err := e.Start(t.Context()); err != row.err {
			t.Errorf("start %d: %v", i, err)
		}
		e.Stop()
		if _, err := os.Stat(filepath.Dir(file)); file != "" && err == nil {
			t.Errorf("start %d leaves its file", i)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_ = (&counted{&starting{err: errors.New("ended")}, "c", "0", "", all}).Start(gone) // counts for nothing

	w := httptest.NewRecorder()
	(&Node{machine: machine{starts: all}}).metrics(w, nil)
	for _, want := range []string{
		`medusa_serve_starts_total{model="a",status="restored",reason=""} 2`,
		`medusa_serve_starts_total{model="a",status="native",reason="incompatible"} 1`,
		`medusa_serve_starts_total{model="a",status="unknown",reason=""} 1`,
		`medusa_serve_starts_total{model="b",status="native",reason="no_artifact"} 1`,
		`medusa_serve_starts_total{model="b",status="failed",reason=""} 1`,
		`medusa_serve_start_seconds_count{model="a",status="restored",reason=""} 2`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("metrics lack %s:\n%s", want, w.Body)
		}
	}
	if got := strings.Count(w.Body.String(), "medusa_serve_starts_total{"); got != 5 {
		t.Errorf("%d kinds of starts", got)
	}
	if s := all.of("a", "0"); s == nil || s.Status != unknownStart {
		t.Errorf("the last start is %+v", s)
	}
	if s := all.of("c", "0"); s != nil {
		t.Errorf("a start that nobody wanted is %+v", s)
	}
}
