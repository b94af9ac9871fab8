package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// notTried is the exit code of a start's shell that could not mount a file system of its own.
const notTried = 99

// disks starts and pulls with a TMPDIR or a cache that is a file system of a few pages: empty, full, or full by the time that the
// engine starts.
func disks(ctx context.Context, a *attacker) error {
	sizes := []string{"4k", "16k", "64k", "256k", "1m", "4m"}
	if a.n < 1000 {
		sizes = []string{"4k", "1m"}
	}
	h, err := a.startHub(ctx, a.bases[0])
	if err != nil {
		return err
	}
	defer h.server.Close()
	counts := map[string]int{}
	n := 0
	for _, size := range sizes {
		for _, full := range []string{never, before, later} {
			for _, d := range []disk{
				{"TMPDIR", []string{"restore", a.bases[0].path}}, {"TMPDIR", []string{"restore", "--strict", a.bases[0].path}},
				{"MEDUSA_CACHE", []string{"restore", a.bases[0].path}}, {"MEDUSA_CACHE", []string{"pull", h.ref()}},
			} {
				if full == later && d.variable != "TMPDIR" { // an engine does not write to the cache
					continue
				}
				how, err := a.small(ctx, d, size, full)
				if err != nil {
					return err
				}
				counts[how]++
				n++
			}
		}
	}
	a.try(n)
	a.line("small and full disks", counts)
	return nil
}

// When a disk is full.
const (
	never  = "never"
	before = "before"
	later  = "later" // the start has made its folders, and its engine begins
)

// disk is the role of a small file system, and the command that meets it.
type disk struct {
	variable string
	args     []string
}

// small runs the command in namespaces of its own, in which the folder is a file system of that size.
func (a *attacker) small(ctx context.Context, d disk, size, full string) (string, error) {
	p, err := a.newPlace()
	if err != nil {
		return "", err
	}
	where := fmt.Sprintf("%s of %s, full: %s, %s", d.variable, size, full, strings.Join(d.args[:len(d.args)-1], " "))
	folder := p.tmp
	if d.variable == "MEDUSA_CACHE" {
		folder = p.cache
	}
	argv := append([]string{filepath.Join(a.build, "medusa")}, d.args...)
	filling := fmt.Sprintf("dd if=/dev/zero of=%s/full bs=1024 >/dev/null 2>&1", folder)
	fill := ":"
	if full == before {
		fill = filling
	}
	if d.args[0] == "restore" {
		argv = append(argv, "--")
		if full == later {
			argv = append(argv, "sh", "-c", filling+`; exec "$@"`, "sh")
		}
		argv = append(argv, filepath.Join(a.build, "zoo"))
	}
	script := fmt.Sprintf(`mount -t tmpfs -o size=%s tmpfs %s || exit %d; %s; "$@"; code=$?; rm -f %s/full; ls -A %s >%s/left; %s cache verify >%s/verify 2>&1; exit $code`,
		size, folder, notTried, fill, folder, folder, p.out, argv[0], p.out)
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--map-root-user", "--mount", "sh", "-c", script, "sh"}, argv...)...)
	cmd.Env, cmd.Dir = p.environ(a.bases[0].env...), p.out
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // its status says it
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == notTried || strings.Contains(errs.String(), "unshare:") {
		return "not tried", os.RemoveAll(p.dir) // no unshare here, or the kernel refuses
	}
	code := cmd.ProcessState.ExitCode()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		a.found(panics, where, "ended by %v", ws.Signal())
	}
	if text := panicked(errs.String()); text != "" {
		a.found(panics, where, "%s", text)
	}
	how := "pulled or refused"
	if d.args[0] == "restore" {
		how = a.judgeDisk(where, d, code, out.String(), errs.String())
	}
	if names, _ := os.ReadFile(filepath.Join(p.out, "left")); d.variable == "TMPDIR" && len(names) > 0 {
		a.found(left, where, "tmp/%s", randomPart.ReplaceAllString(strings.TrimSpace(string(names)), "*"))
	}
	if text, _ := os.ReadFile(filepath.Join(p.out, "verify")); strings.Contains(string(text), "damaged") {
		a.found(halfMade, where, "%s", lastLine(string(text)))
	}
	return how, p.close(a.tally, where)
}

// judgeDisk demands that a start serves, and reports truly how it started. With --strict it may also refuse, with an exit code
// other than 0.
func (a *attacker) judgeDisk(where string, d disk, code int, stdout, stderr string) string {
	var result struct {
		Restored bool
		Output   string
	}
	served := json.Unmarshal([]byte(stdout), &result) == nil && result.Output != ""
	strict := len(d.args) > 2
	switch {
	case served && result.Output != a.bases[0].output:
		a.found(wrong, where, "other outputs")
	case served && (code != 0 || result.Restored && strings.Contains(stderr, "native start")):
		a.found(lying, where, "it served (restored: %v), exit %d: %s", result.Restored, code, lastLine(stderr))
	case !served && !strict:
		a.found(unserved, where, "exit %d: %s", code, lastLine(stderr))
	case !served && code == 0:
		a.found(unserved, where, "exit 0 without output")
	case !served:
		return "refused (--strict)"
	case result.Restored:
		return "restored"
	default:
		return "native"
	}
	return broken
}
