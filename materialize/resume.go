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

	"medusa/artifacts"
	"medusa/kvprofile"
	"medusa/materialize/recording"
)

// A series of runs can end early and go on later, from the traces that it kept: recording takes minutes, and what fails in a check
// is often looked at more than once.

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

// seriesFile is beside kept traces, and says what they are traces of.
const seriesFile = "series.json"

// cachesFolder is beside them, with what JIT compilers made in the runs.
const cachesFolder = "caches"

// candidateFile is among the files of a check-native that agreed with its candidate, and holds that candidate's digest.
const candidateFile = "candidate"

// series is what traces that were kept are good for.
type series struct {
	Argv     []string            `json:"argv"`
	Profiles []kvprofile.Profile `json:"profiles,omitempty"` // of record-a and record-b, by rank; none: they have not been made
}

func (e *engine) keep(s series) error {
	s.Argv = e.argv
	data, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(filepath.Join(e.dir, seriesFile), data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep traces: %w", err)
	}
	return nil
}

// resume reads what an earlier series kept, and gives the JIT compilers what they had made.
func (e *engine) resume(caches string) error {
	data, err := os.ReadFile(filepath.Join(e.dir, seriesFile))
	if err != nil {
		return fmt.Errorf("resume %s: %w (it is a folder that --keep-traces named)", e.dir, err)
	}
	var s series
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("resume %s: read %s: %w", e.dir, seriesFile, err)
	}
	if !slices.Equal(s.Argv, e.argv) {
		return fmt.Errorf("resume %s: its traces are of the command %q", e.dir, s.Argv)
	}
	e.kept = &s
	err = os.CopyFS(caches, os.DirFS(filepath.Join(e.dir, cachesFolder)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("resume %s: %w", e.dir, err)
	}
	return nil
}

// stop ends a series that was told to end after this step. What JIT compilers made stays beside the traces.
func (e *engine) stop(o Options, step, caches string) error {
	if o.Until != step {
		return nil
	}
	kept := filepath.Join(e.dir, cachesFolder)
	if err := errors.Join(os.RemoveAll(kept), os.CopyFS(kept, os.DirFS(caches))); err != nil {
		return fmt.Errorf("keep caches: %w", err)
	}
	return errStopped
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
		err = os.WriteFile(filepath.Join(e.dir, runCheckNative+checkSuffix, candidateFile), []byte(sum), 0o644)
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

// checkUntil finds what would be told only after minutes.
func (o *Options) checkUntil() error {
	if o.Until != "" && (!slices.Contains(Untils, o.Until) || o.Traces == "") {
		return fmt.Errorf("materialize until %q: want one of %q, and a directory for the traces", o.Until, Untils)
	}
	return nil
}

// stopped turns the end of a series that was told to end into no error, and no artifact.
func stopped(art *artifacts.Artifact, err error) (*artifacts.Artifact, error) {
	if errors.Is(err, errStopped) {
		return nil, nil
	}
	return art, err
}
