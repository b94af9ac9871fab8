package artifacts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Factor is one fact on which an artifact's validity depends.
type Factor struct{ Key, Value string }

// Identity lists the factors that an artifact is valid for, in the order in which they became known. Each key occurs once.
type Identity []Factor

// Level is the effect of a difference in a factor.
type Level int

const (
	// Fatal differences make an artifact useless: its addresses, kernels or sizes are wrong. Unknown keys are fatal.
	Fatal Level = iota
	// Relaxable differences make an artifact incompatible unless the user allows them.
	Relaxable
	// Noted differences are shown and have no effect. These factors are not part of the digest.
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

// The well-known keys. A name follows each of the Prefix constants.
const (
	KeyGPUName           = "gpu.name"
	KeyComputeCapability = "gpu.compute_capability" // major.minor
	KeySMCount           = "gpu.sm_count"
	KeyGPUMemory         = "gpu.memory"       // bytes, total
	KeyDriverVersion     = "driver.version"   // of the driver package, or cuDriverGetVersion's number if that is unknown
	keyCUDAVersion       = "cuda.version"     // of the runtime that the engine uses
	KeyEngineName        = "engine.name"      //
	KeyEngineVersion     = "engine.version"   //
	KeyEngineArgs        = "engine.args"      // those that decide shapes, kernels or memory
	KeyFramework         = "engine.framework" // such as "torch 2.9.0"
	KeyModelConfig       = "model.config"     // sha256 of the configuration
	KeyModelCheckpoint   = "model.checkpoint" // of the weights' contents; an artifact without it serves any contents
	keyRanks             = "ranks.layout"     // tensor, pipeline and data parallel sizes and this rank's place in them, in the engine's words
	KeyRankIndex         = "rank.index"       // rank of this worker process, from 0
	KeyRankCount         = "rank.count"       // number of worker processes
	keyMedusaVersion     = "medusa.version"
	KeyHostKernel        = "host.kernel"

	prefixEnv     = "env."     // followed by an environment variable; absent: the engine's default
	prefixSetting = "setting." // followed by a setting of the engine, in its words; absent: its default
	prefixDSO     = "dso."     // followed by a shared object with device code; the value is its build-id
)

// The relaxable and noted factors. All others are fatal.
var (
	relaxable = map[string]bool{KeyDriverVersion: true}
	noted     = map[string]bool{keyMedusaVersion: true, KeyHostKernel: true}
)

// LevelOf returns the effect of a difference in a factor with this key.
func LevelOf(key string) Level {
	switch {
	// mutant: build-ids can be relaxed
	case relaxable[key] || strings.HasPrefix(key, prefixDSO):
		return Relaxable
	// mutant: noted factors change nothing
	case noted[key]:
		return Noted
	default:
		return Fatal
	}
}

// Get returns the value of a key and whether the key exists.
func (id Identity) Get(key string) (string, bool) {
	for _, f := range id {
		if f.Key == key {
			return f.Value, true
		}
	}
	return "", false
}

// Has reports whether the key exists.
func (id Identity) Has(key string) bool {
	_, found := id.Get(key)
	return found
}

// Validate checks that keys are not empty and unique, and that keys and values are UTF-8.
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

// Document returns the canonical JSON document of an identity: {"version":1,"factors":{...}} without noted factors, with keys in
// byte order and no white space.
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
	// Encoding a struct of int and map[string]string cannot fail.
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
	WantSet, GotSet bool // whether this side has the factor
	Level           Level
}

// HasDefault reports whether a key that is absent means a default.
func HasDefault(key string) bool {
	return strings.HasPrefix(key, prefixEnv) || strings.HasPrefix(key, prefixSetting)
}

func (d Difference) String() string {
	side := func(value string, set bool) string {
		switch {
		case !set && HasDefault(d.Key):
			return "the default"
		case !set:
			return "nothing"
		}
		return fmt.Sprintf("%q", value)
	}
	effect := [...]string{Fatal: "must be equal", Relaxable: "--relax allows it", Noted: "no effect"}[d.Level]
	return fmt.Sprintf("%s: want %s, got %s (%s)", d.Key, side(d.Want, d.WantSet), side(d.Got, d.GotSet), effect)
}

// Change says how a start gets the artifact's value of a factor. It is empty if only another machine or another installation has it.
func (d Difference) Change() string {
	// mutant: what to change
	variable, isVariable := strings.CutPrefix(d.Key, prefixEnv)
	setting, isSetting := strings.CutPrefix(d.Key, prefixSetting)
	switch {
	case isVariable && d.WantSet:
		return fmt.Sprintf("set the variable %s=%s", variable, d.Want)
	case isVariable:
		return "unset the variable " + variable
	case isSetting && d.WantSet:
		return fmt.Sprintf("give the engine %s=%s", setting, d.Want)
	case isSetting:
		return fmt.Sprintf("leave the engine's %s at its default", setting)
	}
	return ""
}

// Diff returns every factor in which two identities differ, of any level: first in the order of want, then of got.
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
			level := LevelOf(f.Key)
			// mutant: artifact that serves every checkpoint
			if f.Key == KeyModelCheckpoint {
				level = Noted
			}
			out = append(out, Difference{f.Key, "", f.Value, false, true, level})
		}
	}
	return out
}

// Mismatch lists the factors in which a process differs from the identity of an artifact. It wraps ErrIncompatible.
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

// Relaxed is the set of differences that a user allows: keys, prefixes of keys with "*" at the end, or KEY=VALUE, which allows only
// this value.
type Relaxed []string

// ParseRelaxed reads a comma-separated list. It refuses factors that are not relaxable.
func ParseRelaxed(list string) (Relaxed, error) {
	var out Relaxed
	for _, key := range strings.Split(list, ",") {
		if key = strings.TrimSpace(key); key == "" {
			continue
		}
		name, _, _ := strings.Cut(key, "=")
		// mutant: fatal factors stay
		if level := LevelOf(strings.TrimSuffix(name, "*")); level != Relaxable {
			return nil, fmt.Errorf("relax %s: its level is %s (only %s and %s* can be relaxed)", key, level, KeyDriverVersion, prefixDSO)
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
		if name, value, one := strings.Cut(key, "="); one {
			// mutant: another value is not the one that is allowed
			return name == d.Key && d.GotSet && value == d.Got
		}
		prefix, wild := strings.CutSuffix(key, "*")
		// mutant: names that begin alike
		return key == d.Key || wild && strings.HasPrefix(d.Key, prefix)
	})
}

// SameMajor reports whether two values of driver.version, as cuDriverGetVersion counts, are of one major version.
func SameMajor(a, b string) bool {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && x/1000 == y/1000
}

// OnlyDriver returns the driver's version here if a start is refused only because of another driver of the same major version.
func (m *Mismatch) OnlyDriver() (here string, only bool) {
	for _, d := range m.Differences {
		switch {
		case d.Level == Noted:
		case d.Key == KeyDriverVersion && SameMajor(d.Want, d.Got):
			here, only = d.Got, true
		default:
			return "", false
		}
	}
	return here, only
}

// Compare returns nil if a process with the identity got can use an artifact made for want. Otherwise it returns every differing
// factor, allowed or not. Compare the result with nil before you assign it to an error: a nil *Mismatch in an error is not nil.
func Compare(want, got Identity, relaxed Relaxed) *Mismatch {
	diff := Diff(want, got)
	// mutant: differences that matter
	if !slices.ContainsFunc(diff, func(d Difference) bool { return d.Level != Noted && !relaxed.allows(d) }) {
		return nil
	}
	return &Mismatch{diff}
}
