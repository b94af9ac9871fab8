package doctor

import (
	"strings"
	"syscall"
	"testing"
)

// restricted is /proc/self/status in a pod with all settings of docs/kubernetes.
const restricted = "Name:\tmedusa\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"

func TestPrivileges(t *testing.T) {
	for _, row := range []struct{ name, from, to, want string }{
		{"nothing is too wide", "", "", ""},
		{"root", "1000\t1000", "1000\t0", "runAsNonRoot"},
		{"two capabilities", "CapEff:\t0000000000000000", "CapEff:\t0000000000200001", "has 2 capabilities"},
		{"set-user-id files", "NoNewPrivs:\t1", "NoNewPrivs:\t0", "allowPrivilegeEscalation"},
		{"no filter", "Seccomp:\t2", "Seccomp:\t0", "seccompProfile"},
	} {
		p, err := readPrivileges(strings.Replace(restricted, row.from, row.to, 1), syscall.MS_RDONLY)
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		got := strings.Join(p.tooWide(), "; ")
		if (row.want == "") != (got == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	p, err := readPrivileges(restricted, 0)
	if err != nil || len(p.tooWide()) != 1 || !strings.Contains(p.tooWide()[0], "readOnlyRootFilesystem") {
		t.Errorf("a writable root: %q, %v", p.tooWide(), err)
	}
	for _, broken := range []string{"", "Uid:\t1\nCapEff:\t0\n", strings.Replace(restricted, "CapEff:\t0000", "CapEff:\tx", 1)} {
		if _, err := readPrivileges(broken, 0); err == nil {
			t.Errorf("%q is read as privileges", broken)
		}
	}
}
