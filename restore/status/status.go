// Package status is the account that one start of an engine under medusa gives of itself: a JSON object for platforms, and an exit
// code for the supervising parent. It imports no driver binding: both sides of the process boundary use it.
package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"medusa/internal/atomicfile"
)

// ExitSticky is the exit code of a process whose restored graphs left a sticky device error: its context is lost, and
// only a new process can start natively.
const ExitSticky = 86

// The values of Status.Status.
const (
	Restored = "restored"
	Native   = "native"
	Sticky   = "sticky"
)

// The reasons that the supervising parent gives, beside those of the engine's process (restore.Code).
const (
	NoSession   = "no_session"       // no process of the engine opened a session
	Untrusted   = "untrusted"        // the policy refuses the artifact, or others can change it
	SwitchedOff = "switched_off"     // an operator made every start native
	Ended       = "engine_ended"     // an engine of several ranks ended before all were ready
	Missing     = "artifact_missing" // as the engine's process says it
	Corrupt     = "artifact_corrupt"
)

// The values of Status.Addresses.
const (
	Exact     = "exact"
	Relocated = "relocated"
)

// The values of Status.Hashing.
const (
	OnDevice = "device"
	OnHost   = "host"
)

// Status is the JSON object that a start leaves. Fields are only ever added.
type Status struct {
	Status       string             `json:"status"`           // restored, native, or sticky
	Reason       string             `json:"reason,omitempty"` // a restore.Code, or one of the above
	Detail       string             `json:"detail,omitempty"`
	Pool         string             `json:"pool,omitempty"` // yes: the process comes from a pool; else how the start differs from what the pool has
	Device       string             `json:"device,omitempty"`
	Rank         int                `json:"rank,omitempty"`    // of several worker processes: which, from 0
	Ranks        int                `json:"ranks,omitempty"`   // ... of how many, also in the start's status; 0: there is one
	Follows      bool               `json:"follows,omitempty"` // native only because another rank is: the reason is that rank's
	Engine       int                `json:"engine,omitempty"`  // of several engines that share nothing: which, from 0
	Engines      int                `json:"engines,omitempty"` // ... of how many, likewise
	Milliseconds float64            `json:"milliseconds"`      // Medusa's own time, the sum of Spans
	Spans        map[string]float64 `json:"spans"`             // milliseconds
	Graphs       int                `json:"graphs"`
	Nodes        int                `json:"nodes"`
	Templates    int                `json:"templates"`
	Kernels      int                `json:"kernels"`
	Found        map[string]int     `json:"found,omitempty"`         // of these, how many were found how
	Allocations  int                `json:"allocations"`             // graph-owned, made by the restorer
	Reloaded     int                `json:"reloaded"`                // modules loaded from their images
	Addresses    string             `json:"addresses,omitempty"`     // of a restored start: exact or relocated
	Relocated    string             `json:"relocated,omitempty"`     // why
	Hashing      string             `json:"hashing,omitempty"`       // checks hashed memory on the device or the host
	HostHashing  string             `json:"host_hashing,omitempty"`  // why on the host
	OtherWeights bool               `json:"other_weights,omitempty"` // than verification's: checks replayed the graphs and compared no results
	Memory       *Memory            `json:"memory,omitempty"`        // of the device, when the engine is ready
	Triggers     []Trigger          `json:"triggers"`
	Phases       []Phase            `json:"phases"` // as the engine marked them
}

// Memory is device memory in bytes. Free is all that is free, whoever holds the rest. VerifiedNative and VerifiedRestored were
// free in the two starts that verified the artifact, once the self test was served: the cost or gain of restoring, on one
// device. They are 0 if the start is native, or the artifact does not say.
type Memory struct {
	Free             uint64 `json:"free"`
	Total            uint64 `json:"total"`
	VerifiedNative   uint64 `json:"verified_native_free,omitempty"`
	VerifiedRestored uint64 `json:"verified_restored_free,omitempty"`
}

// Trigger is the account of one run of the triggering layer.
type Trigger struct {
	Batch        int64   `json:"batch"`
	Launches     uint64  `json:"launches"`
	Milliseconds float64 `json:"milliseconds"` // the engine's time, not in the status's total
}

// Phase is a phase of the engine's start and when it began, in seconds since the first one.
type Phase struct {
	Name  string  `json:"name"`
	Began float64 `json:"began"`
}

// Unwritten ends the name of an empty file that Write leaves if a file can be made but not filled: on a full disk.
const Unwritten = ".unwritten"

// Meeting is the name of the status in the folder in which the ranks of a start meet. A process that may not write where it was told to, since it
// has given up its starter's privileges, leaves the status there.
const Meeting = "status.json"

// Write stores the object under its name in one step: a reader never sees half of it.
func Write(path string, st *Status) error {
	data, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return fmt.Errorf("write status %s: %w", path, err)
	}
	if err := atomicfile.Write(path, 0o600, bytes.NewReader(append(data, '\n'))); err != nil {
		return errors.Join(fmt.Errorf("write status: %w", err), mark(path+Unwritten))
	}
	return nil
}

// mark makes an empty file. It follows no link: the folder may be one to which all users can write.
func mark(path string) error {
	// mutant: a link in place of the mark
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// maxSize is more than a status has, in bytes: one of a thousand triggering layers has some 100 KB.
const maxSize = 16 << 20

// Read reads a file of Write. It follows no link, and does not wait for a pipe: the engine's user may have put either there.
func Read(path string) (*Status, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize))
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	var st Status
	if err := json.Unmarshal(data, &st); err != nil {
		return nil, fmt.Errorf("read status %s: %w", path, err)
	}
	return &st, nil
}
