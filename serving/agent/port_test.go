package agent

import "testing"

// No two engines get the same port, although a port is free until its engine listens. With this many, the system offers some
// ports again.
func TestPortsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 2000 {
		port, err := takePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %s was given twice", port)
		}
		seen[port] = true
	}
	for port := range seen {
		givePort(port)
	}
	if len(taken.ports) != 0 {
		t.Errorf("%d ports are still taken", len(taken.ports))
	}
}
