package gateway

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/internal/yamlfile"
)

const good = `
listen: 127.0.0.1:0
gpus: ["0"]
models:
- name: a
  command: [engine, --port, "{port}"]
`

// Each mistake is found at its line.
func TestMistakes(t *testing.T) {
	for _, row := range []struct {
		name, old, new string
		line           int
		want           string
	}{
		{"an unknown field", "gpus:", "cpus: 3\ngpus:", 3, "cpus"},
		{"no address", "127.0.0.1:0", "here", 2, "no address"},
		{"no GPU", `["0"]`, "[]", 3, "no GPU"},
		{"no model", "models:\n- name: a\n  command: [engine, --port, \"{port}\"]", "models: []", 4, "no model"},
		{"a model twice", "models:", "models:\n- {name: a, command: ['{port}']}", 6, "twice"},
		{"no port", "{port}", "80", 6, "{port}"},
		{"too much memory", "name: a", "name: a\n  memory: 1.5", 6, "share"},
		{"no slots", "name: a", "name: a\n  slots: -1", 6, "positive"},
		{"sleep without host memory", "name: a", "name: a\n  sleep: 1", 6, "needs host_memory_gb"},
		{"slots in parts", "name: a", "name: a\n  slots: 1.5", 6, "whole number"},
		{"a parameter in parts", "models:", "policy: {name: lalbo3, o3_limit: 2.5}\nmodels:", 4, "whole number"},
		{"an argument that would be another text", "engine,", "engine, 0.90,", 6, "quote it"},
		{"a time that is none", "models:", "health: 1e-10\nmodels:", 4, "health"},
		{"a pool of native starts", "name: a", "name: a\n  pool: pool.yaml", 6, "only restored starts"},
		{"weights of native starts", "name: a", "name: a\n  weights: [w]", 6, "only restored starts"},
		{"a level of sleep", "name: a", "name: a\n  sleep: 3", 6, "0, 1 or 2"},
		{"an unknown policy", "models:", "policy: {name: best}\nmodels:", 4, "unknown name"},
		{"a wrong parameter", "models:", "policy: {d: -1}\nmodels:", 4, "d must be positive"},
		{"torpor without deadlines", "models:", "policy: {name: torpor}\nmodels:", 6, "deadline"},
		{"kept models that leave no room", "name: a", "keep: true\n  memory: 0.5\n  name: a\n  command: ['{port}']\n- name: b", 5, "keep models: 0.5 of 1 GPUs may leave no room for b"},
		{"one neighbour", "models:", "neighbours: [['0']]\nmodels:", 4, "pairs"},
		{"a neighbour that is no GPU", "models:", "neighbours: [['0', '1']]\nmodels:", 4, "GPU 1 is not in gpus"},
		{"a GPU beside itself", "models:", "neighbours:\n- ['0', '0']\nmodels:", 5, "has a neighbour already"},
		{"no file of keys", "models:", "keys: missing\nmodels:", 4, "missing"},
		{"no YAML", "gpus:", "gpus: [", 4, "must be specified"},
	} {
		text := strings.Replace(good, row.old, row.new, 1)
		_, err := parse("serve.yaml", []byte(text))
		var at *yamlfile.Error
		if !errors.As(err, &at) || at.Line != row.line || at.File != "serve.yaml" || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v; want line %d and %q", row.name, err, row.line, row.want)
		}
	}
	s, err := parse("serve.yaml", []byte(good))
	if err != nil || s.Models[0].Memory != 1 || s.Models[0].Slots != 8 || s.Policy.Name != "mqfq" {
		t.Errorf("%+v, %v", s, err)
	}
}

// Keys are lines of a file beside the configuration.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write("serve.yaml", strings.Replace(good, "gpus:", "keys: keys.txt\ngpus:", 1))
	write("keys.txt", "# of the team\n\n")
	if _, err := Load(path); err == nil {
		t.Error("a file without keys is accepted")
	}
	write("keys.txt", "# of the team\nsk-1\n  sk-2  \n")
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.KeysFile, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := s.keys(); err == nil || !strings.Contains(err.Error(), "others can write to it") {
		t.Errorf("keys of others: %v", err)
	}
	if err := os.Chmod(s.KeysFile, 0o600); err != nil {
		t.Fatal(err)
	}
	if keys, err := s.keys(); err != nil || len(keys) != 2 || !keys["sk-1"] || !keys["sk-2"] {
		t.Errorf("%v, %v", keys, err)
	}
}
