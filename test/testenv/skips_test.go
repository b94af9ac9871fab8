package testenv

import "testing"

// noted is a test that notes how it ended.
type noted struct {
	testing.TB
	failed, skipped bool
}

func (n *noted) Helper()               {}
func (n *noted) Fatalf(string, ...any) { n.failed = true }
func (n *noted) Skipf(string, ...any)  { n.skipped = true }

func TestSkip(t *testing.T) {
	for _, row := range []struct {
		ci      string
		missing Missing
		fails   bool
	}{{"", Git, false}, {"", Clang, false}, {"1", Git, true}, {"1", Clang, false}} {
		t.Setenv("CI", row.ci)
		n := &noted{TB: t}
		Skip(n, row.missing)
		if n.failed != row.fails || !row.fails && !n.skipped {
			t.Errorf("CI=%q, without %s: failed %v, skipped %v", row.ci, row.missing.what, n.failed, n.skipped)
		}
	}
}
