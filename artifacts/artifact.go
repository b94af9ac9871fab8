package artifacts

import (
	"io"
	"time"

	"medusa/graphir"
	"medusa/kvprofile"
)

// Artifact is everything that one artifact file holds: of an engine with one worker process, or, with Peers, of rank 0 of
// several.
type Artifact struct {
	Identity     Identity
	KV           kvprofile.Profile
	Spec         *graphir.Spec
	Stages       []StageTimes
	Verification Verification
	Created      time.Time // to the second; the zero time stands for unknown
	Layers       []Layer
	Peers        []*Artifact // of ranks 1 and up; they have neither layers nor peers of their own
}

// Ranks returns how many worker processes the artifact is for.
func (a *Artifact) Ranks() int { return 1 + len(a.Peers) }

// Rank returns the part of one rank, counted from 0.
func (a *Artifact) Rank(rank int) *Artifact {
	if rank == 0 {
		return a
	}
	return a.Peers[rank-1]
}

// Manifest is one rank's Artifact without its graphs: what can be read without loading them.
type Manifest struct {
	Identity     Identity
	KV           kvprofile.Profile
	Stages       []StageTimes
	Verification Verification
	Created      time.Time
	Layers       []Layer
	Region       graphir.Region // of the Spec: who starts a process has to know it before anything is allocated
}

// Layer is a directory that travels with an artifact, packed by package artifacts/layer.
type Layer struct {
	Name       string
	Path       string // where the directory was and, unless the user says otherwise, goes; absolute
	SHA256     [32]byte
	PackedSize uint64      // bytes
	Size       uint64      // bytes of all files
	Files      uint64      // how many entries: files and directories
	Content    io.ReaderAt // the packed bytes; Write needs them, and reading leaves them out (see File.Layer)
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
	// Memory that no replay changed since the graphs were restored: its digest, and which chunks it consists of
	// (restore/digest.Unchanged).
	Unchanged       string
	UnchangedChunks []byte
	Results         string `json:",omitempty"` // why replays' results were not compared; empty: they were
}

// GraphCheck is the comparison of one graph's replays.
type GraphCheck struct {
	Label               string
	BytesCompared       uint64
	NativeDeterministic bool   // two native replays wrote the same bytes
	Digest              string // of all memory that the graph wrote
	Canary              string // of its results after one replay; empty where they are not deterministic
}
