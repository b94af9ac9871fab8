package restore

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/panics"
	"medusa/restore/live"
)

// source is the artifact under restore or under test, and how the process comes by it.
type source struct {
	artifact *artifacts.Artifact // nil until it is there
	token    string              // which artifact: the same in all ranks
	reading  chan read           // the artifact is on its way; nil: it is there, or will not come
}

// spec is the artifact's, once that is there.
func (s *source) spec() *graphir.Spec { return s.artifact.Spec }

// take makes an artifact the one that is restored.
func (s *source) take(path string, a *artifacts.Artifact) {
	s.artifact = a
	s.token = fmt.Sprintf("%s of %s", path, a.Created.UTC())
}

// read is an artifact, or the reason why there is none.
type read struct {
	path     string
	artifact *artifacts.Artifact
	err      error
}

// begin reads an artifact in another goroutine.
func (s *source) begin(path string, rank rank) {
	reading := make(chan read, 1)
	s.reading = reading
	// mutant: artifact is read while the engine makes its context
	go func() {
		var a *artifacts.Artifact
		err := panics.Catch(func() (err error) {
			a, err = artifacts.ReadRank(path, int(rank.index))
			return err
		})
		reading <- read{path, a, err}
	}()
}

// open begins to read the artifact: while it is decoded, the engine makes its context. It returns the reason
// if the start is native already.
func (s *Session) open() *Fallback {
	path := s.env.Artifact
	if s.env.run == Check {
		path = s.env.CheckPlan
	}
	if s.env.run == Restore && s.env.rank.several() && !s.env.alone() && s.env.Rendezvous == "" {
		return &Fallback{Incompatible, errNoMeeting}
	}
	if !live.Present() {
		return &Fallback{InterposerAbsent, live.ErrAbsent}
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() && s.env.run == Restore {
		return nil // Identify chooses
	}
	s.source.begin(path, s.env.rank)
	return nil
}

// tied reports whether the artifact, or one in the folder, counts the contents of weights.
func (s *source) tied(dir string, rank rank) bool {
	if s.artifact != nil {
		// mutant: artifact that is tied to its weights
		return s.artifact.Identity.Has(artifacts.KeyModelCheckpoint)
	}
	paths, _ := candidates(dir) // Identify says why there are none
	return slices.ContainsFunc(paths, func(path string) bool {
		m, err := artifacts.ReadRankManifest(path, int(rank.index))
		return err == nil && m.Identity.Has(artifacts.KeyModelCheckpoint)
	})
}

// opened waits for the artifact if it is still being read. Every question about it begins here.
func (s *Session) opened() {
	if s.source.reading == nil {
		return
	}
	defer s.journal.start("open")()
	r := <-s.source.reading
	s.source.reading = nil
	if r.err != nil {
		_ = s.fall(&Fallback{codeOfRead(r.err), r.err})
		return
	}
	s.source.take(r.path, r.artifact)
}

func codeOfRead(err error) Code {
	var panicked *panics.Error
	switch {
	case errors.As(err, &panicked):
		return Internal
	case errors.Is(err, artifacts.ErrCorrupt):
		return ArtifactCorrupt
	case errors.Is(err, artifacts.ErrVersion):
		return Format
	}
	return ArtifactMissing
}
