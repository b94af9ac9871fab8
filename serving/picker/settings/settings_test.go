package settings

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/artifacts/trust"
	"medusa/serving/gateway"
)

const good = `
secret: secret
policy: {name: mqfq, d: 3}
models:
- {name: a, weight: 2}
- {name: b, deadline: 5}
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	path := write(t, good)
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := s.Socket(); !ok || at != filepath.Join(filepath.Dir(path), "picker.sock") {
		t.Errorf("without listen: %q", s.Listen)
	}
	p := s.Params()
	if s.Secret != filepath.Join(filepath.Dir(path), "secret") || s.MaxWaiting != 256 || p.D != 3 || !slices.Equal(p.Weights, []float64{2, 1}) || !slices.Equal(p.Deadline, []float64{600, 5}) {
		t.Errorf("%+v, %+v", s, p)
	}
	for _, row := range []struct{ from, to, want string }{
		{"secret: secret", "", "secret is missing"},
		{"secret: secret", "secret: s\nlisten: here", ":3:9: check settings: \"here\" is no address"},
		{"secret: secret", "secret: s\nlisten: 127.0.0.1:9002", "whoever reaches 127.0.0.1:9002 gets tickets"},
		{"secret: secret", "secret: s\nlisten: 127.0.0.1:9002\ntls: {certificate: a, key: b}", "certificate, key and clients are needed"},
		{"secret: secret", "secret: s\nlisten: \"unix:\"", "has no path"},
		{"secret: secret", "secret: s\nlisten: unix:a\ntls: {certificate: a, key: b, clients: c}", "a Unix socket has no TLS"},
		{"mqfq", "none", "unknown name"},
		{"mqfq", "torpor", "needs a deadline"},
		{"name: b", "name: a", "a is there twice"},
		{"weight: 2", "weight: -1", "weights must be positive"},
		{"weight: 2", "timeout: 0", "a time above 0"},
		{"weight: 2", "wait: 2", "unknown field"},
		{"secret: secret", "secret: s\nmax_endpoints: 5000", "from 1 to 4096"},
		{"secret: secret", "secret: s\nfallbacks: -1", "must not be negative"},
	} {
		if _, err := Load(write(t, strings.Replace(good, row.from, row.to, 1))); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.to, err)
		}
	}
}

func TestEndpoints(t *testing.T) {
	list, err := Endpoints(write(t, "endpoints: [10.0.0.1:80, \"[::1]:80\"]"))
	if err != nil || !slices.Equal(list, []string{"10.0.0.1:80", "[::1]:80"}) {
		t.Errorf("%q, %v", list, err)
	}
	for _, text := range []string{"endpoints: [here:80]", "endpoints: [10.0.0.1]", "endpoints: [10.0.0.1:80, 10.0.0.1:80]", "endpoints: [10.0.0.1:080]", "points: []"} {
		if list, err := Endpoints(write(t, text)); err == nil {
			t.Errorf("%s: %q", text, list)
		}
	}
}

// The programs can read the files of the manifests.
func TestManifests(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "docs", "kubernetes", "gateway")
	s, err := Load(filepath.Join(folder, "picker.config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := gateway.Load(filepath.Join(folder, "agent.config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if a.Agent == nil || a.Agent.Secret != s.Secret || len(a.Models) != len(s.Models) || a.Models[0].Name != s.Models[0].Name {
		t.Errorf("the picker has %+v, the agents have %+v", s, a)
	}
	policy, err := os.ReadFile(filepath.Join(folder, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	beside := t.TempDir() // with a key in place of the cluster's
	if err := errors.Join(trust.Generate(filepath.Join(beside, "release.key")), os.WriteFile(filepath.Join(beside, "policy.yaml"), policy, 0o600)); err != nil {
		t.Fatal(err)
	}
	if p, err := trust.ReadPolicy(filepath.Join(beside, "policy.yaml")); err != nil || !p.Required || len(p.Keys) != 1 {
		t.Errorf("policy %+v, %v", p, err)
	}
}
