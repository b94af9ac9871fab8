package materialize

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"medusa/artifacts"
	"medusa/artifacts/bundled"
	"medusa/internal/private"
	"medusa/internal/scratch"
	"medusa/kvprofile"
	"medusa/materialize/recording"
)

// A series of runs can end early and go on later, from the traces that it kept: recording takes minutes, and a check that fails is often repeated.

// Steps after which a series can end.
const (
	UntilProfile = "profile"
	UntilRecord  = "record" // record-a and record-b, and the candidate compiled from them
	UntilNative  = "native" // check-native
)

// Untils lists them in order.
var Untils = []string{UntilProfile, UntilRecord, UntilNative}

// errStopped ends a series that was told to end early.
var errStopped = errors.New("the series was told to end here")

// seriesFile is beside kept traces, and describes the series that left them.
const seriesFile = "series.json"

// cachesFolder is beside them, with the output of JIT compilers in the runs.
const cachesFolder = "caches"

// candidateFile is among the files of a check-native that agreed with its candidate, and holds that candidate's digest.
const candidateFile = "candidate"

// series describes kept traces: their command, the folder of JIT compilers' caches, and the profiles of their runs.
type series struct {
	Command  string              `json:"command"`            // digest of it: a command line can hold keys
	Alone    int                 `json:"alone,omitempty"`    // ranks that were run one after another
	Caches   string              `json:"caches"`             // path of the JIT compilers' caches
	Profiles []kvprofile.Profile `json:"profiles,omitempty"` // of record-a and record-b, by rank; none: they have not been made
}

func (e *engine) keep(s series) error {
	s.Command, s.Alone, s.Caches = digestOf(e.argv), e.alone, e.caches
	data, err := json.Marshal(s)
	if err == nil {
		err = private.WriteFile(filepath.Join(e.dir, seriesFile), data)
	}
	if err != nil {
		return fmt.Errorf("keep traces: %w", err)
	}
	return nil
}

// digestOf returns the digest of a command line. Its words cannot hold a NUL.
func digestOf(argv []string) string {
	sum := sha256.Sum256([]byte(strings.Join(argv, "\x00")))
	return hex.EncodeToString(sum[:])
}

// readSeries reads the description of an earlier series. All that the folder holds becomes part of the artifact, also code.
func (e *engine) readSeries() (*series, error) {
	// mutant: series of others
	if err := private.Tree(e.dir); err != nil {
		return nil, fmt.Errorf("resume %s: %w", e.dir, err)
	}
	data, err := os.ReadFile(filepath.Join(e.dir, seriesFile))
	if err != nil {
		return nil, fmt.Errorf("resume %s: %w (it is a folder that --keep-traces named)", e.dir, err)
	}
	var s series
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("resume %s: read %s: %w", e.dir, seriesFile, err)
	}
	if s.Command != digestOf(e.argv) {
		return nil, fmt.Errorf("resume %s: its traces are of another command", e.dir)
	}
	// mutant: series of ranks that ran together
	if s.Alone != e.alone {
		return nil, fmt.Errorf("resume %s: its traces are of a series with --ranks-alone %d, not %d (0: without)", e.dir, s.Alone, e.alone)
	}
	return &s, nil
}

// openCaches makes the folder of JIT compilers' caches. A series that goes on has it at the same path, with the earlier output of the compilers: they
// write the path into their output, and with another path they would make other kernels.
func (e *engine) openCaches() (folder *scratch.Folder, err error) {
	// mutant: caches of a resumed series
	if e.kept == nil || !bundled.RecordedPath(e.kept.Caches) {
		folder, err = scratch.Make(bundled.CachesDir, bundled.CachesPrefix)
	} else if folder, err = scratch.At(e.kept.Caches); err == nil {
		if err = os.CopyFS(folder.Path, os.DirFS(filepath.Join(e.dir, cachesFolder))); errors.Is(err, fs.ErrNotExist) {
			err = nil // compilers had left no output
		}
		if err != nil {
			err = errors.Join(err, folder.Close())
		}
	} else if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w (a start from an artifact of this series uses it: try again after its end)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("make folder of caches: %w", err)
	}
	e.caches = folder.Path
	return folder, nil
}

// keepCaches copies the output of JIT compilers to a folder beside the traces, for a resumed series.
func (e *engine) keepCaches() error {
	kept := filepath.Join(e.dir, cachesFolder)
	if err := errors.Join(os.RemoveAll(kept), os.Mkdir(kept, 0o700), os.CopyFS(kept, os.DirFS(e.caches))); err != nil {
		return fmt.Errorf("keep caches: %w (--resume will compile again)", err)
	}
	return nil
}

// stop ends a series that was told to end after this step.
func (o *Options) stop(step string) error {
	if o.Until == step {
		return errStopped
	}
	return nil
}

// profile makes the run profile, or reads its kept traces.
func (e *engine) profile(run func() ([]*recording.Recording, error)) ([]*recording.Recording, error) {
	if e.kept != nil {
		return readRanks(runProfile, filepath.Join(e.dir, runProfile+traceSuffix), e.ready)
	}
	r, err := run()
	if err == nil {
		err = e.keep(series{})
	}
	return r, err
}

// recorded returns record-a and record-b of an earlier series, if it made them with KV caches of these sizes.
func (e *engine) recorded(profiles []kvprofile.Profile) (a, b []*recording.Recording, err error) {
	if e.kept == nil || !slices.Equal(e.kept.Profiles, profiles) {
		return nil, nil, nil
	}
	if a, err = readRanks(runRecordA, filepath.Join(e.dir, runRecordA+traceSuffix), e.ready); err == nil {
		b, err = readRanks(runRecordB, filepath.Join(e.dir, runRecordB+traceSuffix), e.ready)
	}
	return a, b, err
}

// keptNative reads the files of a check-native in an earlier series, if that was a check of the candidate at path; nil if it was not.
func (e *engine) keptNative(path string, art *artifacts.Artifact) ([]*checked, error) {
	if e.kept == nil {
		return nil, nil
	}
	dir := filepath.Join(e.dir, runCheckNative+checkSuffix)
	of, err := os.ReadFile(filepath.Join(dir, candidateFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	sum, sumErr := sumOf(path)
	if err = errors.Join(err, sumErr); err != nil {
		return nil, fmt.Errorf("resume %s: %w", e.dir, err)
	}
	// mutant: check-native of another candidate
	if sum != string(of) {
		return nil, nil
	}
	return readChecked(dir, art)
}

// keepNative notes which candidate check-native was made for, among the files that it left.
func (e *engine) keepNative(path string) error {
	sum, err := sumOf(path)
	if err == nil {
		err = private.WriteFile(filepath.Join(e.dir, runCheckNative+checkSuffix, candidateFile), []byte(sum))
	}
	if err != nil {
		return fmt.Errorf("keep what %s left: %w", runCheckNative, err)
	}
	return nil
}

// sumOf returns the digest of a file.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// checkUntil finds mistakes that would otherwise show only after minutes.
func (o *Options) checkUntil() error {
	if o.Until != "" && (!slices.Contains(Untils, o.Until) || o.Traces == "") {
		return fmt.Errorf("materialize until %q: want one of %q, and a directory for the traces", o.Until, Untils)
	}
	return nil
}

// stopped returns neither an error nor an artifact for a series that was told to end.
func stopped(art *artifacts.Artifact, err error) (*artifacts.Artifact, error) {
	if errors.Is(err, errStopped) {
		return nil, nil
	}
	return art, err
}
