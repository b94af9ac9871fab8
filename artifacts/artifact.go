package artifacts

import (
	"time"

	"medusa/graphir"
	"medusa/kvprofile"
)

// Artifact is everything that one artifact file holds.
type Artifact struct {
	Identity     Identity
	KV           kvprofile.Profile
	Spec         *graphir.Spec
	Stages       []StageTimes
	Verification Verification
	Created      time.Time // to the second; the zero time stands for unknown
}

// Manifest is an Artifact without its graphs: what can be read without loading them.
type Manifest struct {
	Identity     Identity
	KV           kvprofile.Profile
	Stages       []StageTimes
	Verification Verification
	Created      time.Time
}

// StageTimes are the measured stages of one cold start.
type StageTimes struct {
	Mode   string // "native", "restored", ...
	Device string // GPU name; "simulated" for the simulated GPU
	Driver string
	Date   string // YYYY-MM-DD
	Stages []Stage
}

// Stage is one stage of a cold start, such as "weights" or "capture".
type Stage struct {
	Name    string
	Seconds float64
}

// Verification says what was compared between a native and a restored start before the artifact was written.
type Verification struct {
	Device   string // GPU name; "simulated" for the simulated GPU
	Driver   string
	Date     string // YYYY-MM-DD
	Graphs   []GraphCheck
	SelfTest string // digest of the tokens that the engine's self test produced
	Tokens   uint64 // how many they were
}

// GraphCheck is the comparison of one graph's replays.
type GraphCheck struct {
	Label               string
	BytesCompared       uint64
	NativeDeterministic bool   // two native replays wrote the same bytes
	Digest              string // of all memory that the graph wrote
}
