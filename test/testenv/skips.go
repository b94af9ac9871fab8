package testenv

import (
	"os"
	"testing"
)

// Missing is the reason of a skipped test: it lacks this. The variables below are the list of all that a test may miss.
type Missing struct {
	what string
	why  string // a machine may do without it
	ci   bool   // so may the machine that checks changes
}

// All that a test may miss.
var (
	Clang     = Missing{"clang++-19", "the kernels' code is committed; only a change of their source needs the compiler", true}
	Chromium  = Missing{"chromium", "other tests read the page's text and structure", true}
	Python    = Missing{"python3", "plug-ins in Python are for machines that have one; make test-pool needs it", true}
	Systemd   = Missing{"systemd-analyze", "the unit is an example for machines that have systemd", true}
	Valgrind  = Missing{"valgrind", "counts of instructions guard speed, not results", true}
	Counted   = Missing{"an amd64 processor", "the counts of instructions are of that machine", true}
	Processes = Missing{"process ids of its own (unshare -rpf)", "the kernel or a container may forbid them", true}
	Superuser = Missing{"root", "only root can give files away; make test is run by either", true}
	OtherUser = Missing{"a checkout that other users can read", "it may lie in a home folder", true}
	Mounts    = Missing{"the right to mount", "root in a container may lack it", true}
	NoDriver  = Missing{"a machine without a driver", "a machine with a GPU has one, wherever a process looks", true}
	Git       = Missing{"a checkout of git", "an unpacked archive has no list of files", false}
	Bench     = Missing{"what make bench sets up", "benchmarks are no tests", true}
)

// Skip skips a test for want of something. If CI is set in the environment, it fails instead, unless the list admits that there.
func Skip(t testing.TB, m Missing) {
	t.Helper()
	if os.Getenv("CI") != "" && !m.ci {
		t.Fatalf("%s is missing, and CI has to have it (%s)", m.what, m.why)
	}
	t.Skipf("%s is missing: %s", m.what, m.why)
}
