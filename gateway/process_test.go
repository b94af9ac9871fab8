package gateway

import (
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	command := []string{"engine", "--gpu", "{gpu}", "--name={name}", "{port}"}
	for _, row := range []struct{ artifact, pool, want string }{
		{"", "", "engine --gpu 1 --name=a {port}"},
		{"a.medusa", "", "medusa restore a.medusa -- engine --gpu 1 --name=a {port}"},
		{"a.medusa", "/pool.yaml", "medusa restore --pool /pool.yaml a.medusa -- engine --gpu 1 --name=a {port}"},
	} {
		m := &Model{Name: "a", Command: command, Artifact: row.artifact, Pool: row.pool}
		if argv, restored := m.command("medusa", "1"); strings.Join(argv, " ") != row.want || restored != (row.artifact != "") {
			t.Errorf("%q restored %v, want %q", argv, restored, row.want)
		}
	}
}
