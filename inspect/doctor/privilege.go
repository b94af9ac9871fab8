package doctor

import (
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// privileges are those of this process. An engine started from here inherits them.
type privileges struct {
	User         int    // effective user
	Capabilities uint64 // effective set
	NoNewPrivs   bool   // execve grants no more privileges
	Seccomp      bool   // system calls are filtered
	RootWritable bool   // / is mounted for writing
}

// readPrivileges parses /proc/self/status and the flags of the root file system.
func readPrivileges(status string, rootFlags int64) (privileges, error) {
	var p privileges
	fields := map[string]string{}
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		fields[key] = strings.TrimSpace(value)
	}
	ids := strings.Fields(fields["Uid"])
	if len(ids) != 4 {
		return p, fmt.Errorf("read privileges: Uid is %q", fields["Uid"])
	}
	var err error
	if p.User, err = strconv.Atoi(ids[1]); err != nil {
		return p, fmt.Errorf("read privileges: %w", err)
	}
	if p.Capabilities, err = strconv.ParseUint(fields["CapEff"], 16, 64); err != nil {
		return p, fmt.Errorf("read privileges: %w", err)
	}
	p.NoNewPrivs = fields["NoNewPrivs"] == "1"
	p.Seccomp = fields["Seccomp"] == "2"
	p.RootWritable = rootFlags&syscall.MS_RDONLY == 0
	return p, nil
}

// tooWide lists privileges that neither Medusa nor an engine needs, each with the setting of a pod's securityContext that removes
// it.
func (p privileges) tooWide() []string {
	var out []string
	if p.User == 0 {
		out = append(out, "runs as root (runAsNonRoot: true)")
	}
	if n := bits.OnesCount64(p.Capabilities); n > 0 {
		out = append(out, fmt.Sprintf("has %d capabilities (capabilities: {drop: [ALL]})", n))
	}
	if !p.NoNewPrivs {
		out = append(out, "may gain privileges by executing a file (allowPrivilegeEscalation: false)")
	}
	if !p.Seccomp {
		out = append(out, "system calls are not filtered (seccompProfile: {type: RuntimeDefault})")
	}
	if p.RootWritable {
		out = append(out, "the root file system is writable (readOnlyRootFilesystem: true)")
	}
	return out
}

// inPod reports whether this process runs in a pod of Kubernetes, whose settings could take privileges from it.
func inPod() bool {
	_, err := os.Stat("/var/run/secrets/kubernetes.io")
	return err == nil || os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

// privilegesHere lists the excess privileges of this process. If they cannot be read, the list has the error.
func privilegesHere() []string {
	status, err := os.ReadFile("/proc/self/status")
	var root syscall.Statfs_t
	if err == nil {
		err = syscall.Statfs("/", &root)
	}
	var p privileges
	if err == nil {
		p, err = readPrivileges(string(status), root.Flags)
	}
	if err != nil {
		return []string{"not known: " + err.Error()}
	}
	return p.tooWide()
}
