package artifacts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Factor is one fact that an artifact's validity depends on.
type Factor struct{ Key, Value string }

// Identity is what an artifact is valid for, in the order in which the factors became known. A key occurs once.
type Identity []Factor

// Level says what a difference in a factor means.
type Level int

const (
	// Fatal differences make an artifact useless: its addresses, kernels or sizes are wrong. Keys that nobody knows are
	// fatal.
	Fatal Level = iota
	// Relaxable differences make it incompatible unless the user says otherwise.
	Relaxable
	// Noted differences are shown and change nothing; the factors are not part of the digest.
	Noted
)

func (l Level) String() string {
	switch l {
	case Fatal:
		return "fatal"
	case Relaxable:
		return "relaxable"
	default:
		return "noted"
	}
}

// The well-known keys. Keys that start with one of the Prefix constants carry a name of their own behind it.
const (
	KeyGPUName           = "gpu.name"
	KeyComputeCapability = "gpu.compute_capability" // major.minor
	KeySMCount           = "gpu.sm_count"
	KeyGPUMemory         = "gpu.memory"       // bytes, total
	KeyDriverVersion     = "driver.version"   // of the driver package, or cuDriverGetVersion's number where that is unknown
	KeyCUDAVersion       = "cuda.version"     // of the runtime that the engine uses
	KeyEngineName        = "engine.name"      //
	KeyEngineVersion     = "engine.version"   //
	KeyEngineArgs        = "engine.args"      // those that decide shapes, kernels or memory
	KeyFramework         = "engine.framework" // such as "torch 2.9.0"
	KeyModelConfig       = "model.config"     // sha256 of the configuration
	KeyModelCheckpoint   = "model.checkpoint" // sha256 over names, shapes and content of the weights
	KeyRanks             = "ranks.layout"     // tensor, pipeline and data parallel sizes and this rank's place, as the engine says it
	KeyRankIndex         = "rank.index"       // of several worker processes: which, from 0
	KeyRankCount         = "rank.count"       // ... of how many
	KeyMedusaVersion     = "medusa.version"
	KeyHostKernel        = "host.kernel"

	PrefixEnv = "env." // an environment variable of the allow-list
	PrefixDSO = "dso." // build-id of a shared object that holds device code
)

// relaxable and noted factors; all others are fatal.
var (
	relaxable = map[string]bool{KeyDriverVersion: true}
	noted     = map[string]bool{KeyMedusaVersion: true, KeyHostKernel: true}
)

// LevelOf returns what a difference in a factor with this key means.
func LevelOf(key string) Level {
	switch {
	// mutant: build-ids can be relaxed
	case relaxable[key] || strings.HasPrefix(key, PrefixDSO):
		return Relaxable
	// mutant: noted factors change nothing
	case noted[key]:
		return Noted
	default:
		return Fatal
	}
}

// Get returns the value of a key and whether there is one.
func (id Identity) Get(key string) (string, bool) {
	for _, f := range id {
		if f.Key == key {
			return f.Value, true
		}
	}
	return "", false
}

// Validate checks that keys are present, unique and, like values, UTF-8.
func (id Identity) Validate() error {
	seen := make(map[string]bool, len(id))
	for i, f := range id {
		switch {
		case f.Key == "" || !utf8.ValidString(f.Key):
			return fmt.Errorf("check identity: factor %d has the key %q", i, f.Key)
		// mutant: factors are text
		case !utf8.ValidString(f.Value):
			return fmt.Errorf("check identity: %s is %q, which is not UTF-8", f.Key, f.Value)
		// mutant: factors occur once
		case seen[f.Key]:
			return fmt.Errorf("check identity: %s occurs twice", f.Key)
		}
		seen[f.Key] = true
	}
	return nil
}

// Document returns the canonical JSON document of an identity: {"version":1,"factors":{...}} with all factors but the
// noted ones, keys in byte order, no white space.
func (id Identity) Document() []byte {
	factors := make(map[string]string, len(id))
	for _, f := range id {
		// mutant: digest of an identity
		if LevelOf(f.Key) != Noted {
			factors[f.Key] = f.Value
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	// A struct of int and map[string]string always encodes.
	_ = enc.Encode(struct {
		Version int               `json:"version"`
		Factors map[string]string `json:"factors"`
	}{1, factors})
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// Digest returns "sha256:" and the hexadecimal SHA-256 of the canonical document.
func (id Identity) Digest() string {
	sum := sha256.Sum256(id.Document())
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Difference is one factor that differs.
type Difference struct {
	Key             string
	Want, Got       string
	WantSet, GotSet bool // whether the side has the factor at all
	Level           Level
}

func (d Difference) String() string {
	side := func(value string, set bool) string {
		if !set {
			return "nothing"
		}
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%s: want %s, got %s (%s)", d.Key, side(d.Want, d.WantSet), side(d.Got, d.GotSet), d.Level)
}

// Diff returns every factor in which two identities differ, of any level, in the order of want, then of got.
func Diff(want, got Identity) []Difference {
	var out []Difference
	for _, f := range want {
		// mutant: factors that differ
		if value, set := got.Get(f.Key); !set || value != f.Value {
			out = append(out, Difference{f.Key, f.Value, value, true, set, LevelOf(f.Key)})
		}
	}
	for _, f := range got {
		// mutant: factors that an artifact knows nothing of
		if _, set := want.Get(f.Key); !set {
			out = append(out, Difference{f.Key, "", f.Value, false, true, LevelOf(f.Key)})
		}
	}
	return out
}

// Mismatch says in which factors a process differs from what an artifact is valid for; it wraps ErrIncompatible.
type Mismatch struct{ Differences []Difference }

func (m *Mismatch) Error() string {
	lines := make([]string, len(m.Differences))
	for i, d := range m.Differences {
		lines[i] = d.String()
	}
	return "check artifact identity: " + strings.Join(lines, "; ")
}

// Unwrap returns ErrIncompatible.
func (m *Mismatch) Unwrap() error { return ErrIncompatible }

// Relaxed is the set of differences that a user allows: keys, or, ending in "*", what keys start with.
type Relaxed []string

// ParseRelaxed reads a comma-separated list. Only factors that are relaxable may be named.
func ParseRelaxed(list string) (Relaxed, error) {
	var out Relaxed
	for _, key := range strings.Split(list, ",") {
		if key = strings.TrimSpace(key); key == "" {
			continue
		}
		// mutant: fatal factors stay
		if level := LevelOf(strings.TrimSuffix(key, "*")); level != Relaxable {
			return nil, fmt.Errorf("relax %s: a difference in it is %s (%s and %s* can be relaxed)", key, level, KeyDriverVersion, PrefixDSO)
		}
		out = append(out, key)
	}
	return out, nil
}

// String returns the list that ParseRelaxed reads.
func (r Relaxed) String() string { return strings.Join(r, ",") }

func (r Relaxed) allows(d Difference) bool {
	// mutant: what is relaxed
	return d.Level == Relaxable && slices.ContainsFunc(r, func(key string) bool {
		prefix, wild := strings.CutSuffix(key, "*")
		// mutant: names that begin alike
		return key == d.Key || wild && strings.HasPrefix(d.Key, prefix)
	})
}

// Compare returns nil where a process with the identity got can use an artifact made for want, else every differing
// factor, allowed or not. Assign the result to an error only after comparing it with nil.
func Compare(want, got Identity, relaxed Relaxed) *Mismatch {
	diff := Diff(want, got)
	// mutant: differences that matter
	if !slices.ContainsFunc(diff, func(d Difference) bool { return d.Level != Noted && !relaxed.allows(d) }) {
		return nil
	}
	return &Mismatch{diff}
}
