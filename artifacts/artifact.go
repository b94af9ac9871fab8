package artifacts

import (
	"io"
	"time"

	"medusa/graphir"
	"medusa/kvprofile"
)

// Artifact is the content of one artifact file. If the engine has several worker processes, it is rank 0 and Peers has the
// others.
type Artifact struct {
	Identity     Identity
	KV           kvprofile.Profile
	Spec         *graphir.Spec
	Stages       []StageTimes
	Verification Verification
	Created      time.Time // to the second; zero: unknown
	Directories  []Directory
	Peers        []*Artifact // ranks 1 and up; they have no bundled directories and no peers of their own
}

// Ranks returns the number of worker processes that the artifact is for.
func (a *Artifact) Ranks() int { return 1 + len(a.Peers) }

// Rank returns one rank's part, counted from 0.
func (a *Artifact) Rank(rank int) *Artifact {
	if rank == 0 {
		return a
	}
	return a.Peers[rank-1]
}

// Manifest is one rank's Artifact without its graphs. It can be read without loading them.
type Manifest struct {
	Identity     Identity
	KV           kvprofile.Profile
	Stages       []StageTimes
	Verification Verification
	Created      time.Time
	Directories  []Directory
	Region       graphir.Region // of the Spec; the starter of a process needs it before the first allocation
}

// Directory is a directory bundled with an artifact, packed by package artifacts/bundled.
type Directory struct {
	Name       string
	Path       string // absolute path of the directory in the recorded engine; a restore unpacks it there only if the user names that path (--dir)
	SHA256     [32]byte
	PackedSize uint64      // bytes
	Size       uint64      // bytes of all files
	Files      uint64      // number of files and directories
	Content    io.ReaderAt // the packed bytes; Write needs them, Read leaves them nil (see File.Directory)
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

// Verification records the comparison of a native and a restored start before the artifact was written.
type Verification struct {
	Device   string // GPU name; "simulated" for the simulated GPU
	Driver   string
	Date     string // YYYY-MM-DD
	Graphs   []GraphCheck
	SelfTest string // digest of the tokens that the engine's self test produced
	Tokens   uint64 // their number
	// Memory that no replay changed after the graphs were restored: its digest, and the chunks that it consists of
	// (restore/digest.Unchanged).
	Unchanged       string
	UnchangedChunks []byte
	Results         string `json:",omitempty"` // why the results of replays were not compared; empty: they were
	Alone           bool   `json:",omitempty"` // no other rank was running: graphs with collective calls have no results to compare with
	Weights         string `json:",omitempty"` // digest of the memory of weights with which the results were computed
	Tied            string `json:",omitempty"` // why the contents of the weights are part of the identity; empty: they are not, or the engine always states them
	// Device memory that was free once the self test was served, natively and restored, with the same KV cache; 0: not known.
	NativeFree, RestoredFree uint64
}

// GraphCheck is the comparison of one graph's replays.
type GraphCheck struct {
	Label               string
	BytesCompared       uint64
	NativeDeterministic bool   // two native replays wrote the same bytes
	Digest              string // of all memory that the graph wrote
	Canary              string // digest of its results after one replay; empty if they are not deterministic
}
