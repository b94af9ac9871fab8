package supervisor

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"medusa/internal/contract"
	"medusa/restore/status"
)

// Running is an engine that runs, and how its start went.
type Running struct {
	Process int            `json:"process"` // the oldest of the engine's processes that tell
	Command string         `json:"command"`
	Since   time.Time      `json:"since"`
	Status  *status.Status `json:"status"` // null: it is not ready yet
}

// ListRunning finds the engines of this user, by the file for their accounts in the environment of their processes.
func ListRunning() ([]Running, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	found := map[string]Running{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		at := filepath.Join("/proc", e.Name())
		env, err := os.ReadFile(filepath.Join(at, "environ"))
		if err != nil {
			continue // another user's, or it has ended
		}
		info, err := os.Stat(at)
		command, _ := os.ReadFile(filepath.Join(at, "cmdline"))
		path := variable(env, contract.EnvStatus)
		if old, known := found[path]; path == "" || err != nil || len(command) == 0 || known && old.Process < pid {
			continue
		}
		words := strings.Split(strings.TrimRight(string(command), "\x00"), "\x00")
		r := Running{Process: pid, Command: strings.Join(words, " "), Since: info.ModTime()}
		if st, err := status.Read(path); err == nil {
			r.Status = st
		}
		found[path] = r
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Running) int { return cmp.Compare(a.Process, b.Process) }), nil
}

func variable(env []byte, name string) string {
	for _, kv := range bytes.Split(env, []byte{0}) {
		if value, ok := strings.CutPrefix(string(kv), name+"="); ok {
			return value
		}
	}
	return ""
}
