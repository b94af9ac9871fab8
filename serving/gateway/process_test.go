package gateway

import (
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	command := []string{"engine", "--gpu", "{gpu}", "--name={name}", "{port}"}
	for _, row := range []struct {
		artifact, pool string
		weights        []string
		want           string
	}{
		{"", "", nil, "engine --gpu 1 --name=a {port}"},
		{"a.medusa", "", nil, "medusa restore a.medusa -- engine --gpu 1 --name=a {port}"},
		{"a.medusa", "/pool.yaml", nil, "medusa restore --pool /pool.yaml a.medusa -- engine --gpu 1 --name=a {port}"},
		{"a.medusa", "", []string{"/a", "/b"}, "medusa restore --weights /a --weights /b a.medusa -- engine --gpu 1 --name=a {port}"},
	} {
		m := &Model{Name: "a", Command: command, Artifact: row.artifact, Pool: row.pool, Weights: row.weights}
		if argv, restored := m.command("medusa", "1", ""); strings.Join(argv, " ") != row.want || restored != (row.artifact != "") {
			t.Errorf("%q restored %v, want %q", argv, restored, row.want)
		}
	}
}
