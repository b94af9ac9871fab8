package materialize

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/interpose"
	"medusa/kvprofile"
	"medusa/materialize/compile"
	"medusa/restore/digest"
	"medusa/restore/status"
)

// Verify repeats check-native and check-restored for an artifact that exists, and returns their results by rank. The error is a
// *DigestError if memory differs. If the engine fails, all of its output is in path.log.
func Verify(ctx context.Context, o Options, path string, art *artifacts.Artifact) (_ []artifacts.Verification, err error) {
	dir, remove, err := runFolder()
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", path, err)
	}
	defer remove()
	defer func() { err = keepOutput(err, path+logSuffix) }()
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", path, err)
	}
	e := &engine{argv: o.Argv, library: o.Library, dir: dir, log: o.Log}
	o.Step(0, 2, "check-native: replay native graphs")
	native, pads, err := e.checkNative(ctx, path, art, nil, true)
	if err != nil {
		return nil, err
	}
	o.Step(1, 2, "check-restored: replay restored graphs")
	e.relax = o.Relax
	verified, err := e.checkRestored(ctx, path, art, native)
	if err != nil {
		// mutant: bytes that may be why a replay differs
		err = pads.Without(err)
	} else if len(pads) > 0 {
		_, err = e.proveRestored(ctx, filepath.Join(dir, "candidate.medusa"), art, pads, native)
	}
	var records []artifacts.Verification
	for _, v := range verified {
		records = append(records, v.record)
	}
	return records, err
}

// verification is the result of check-native and check-restored for one rank.
type verification struct {
	record artifacts.Verification
	status *status.Status
	// Device memory left once the self test was served: both runs keep their permanent memory, temporaries are gone in both.
	nativeFree, restoredFree uint64
}

// checkNative is check-native: the engine starts natively under the recorder, replays every graph and serves its self test. It returns the
// padding that is to be presumed beyond pads.
func (e *engine) checkNative(ctx context.Context, path string, art *artifacts.Artifact, pads compile.Paddings, settled bool) ([]*checked, compile.Paddings, error) {
	native, err := e.keptNative(path, art)
	if native == nil && err == nil {
		native, err = e.check(ctx, runCheckNative, contract.Start{Run: contract.RunCheckNative, CheckPlan: path}, art)
	}
	if err != nil {
		return nil, nil, err
	}
	recorded, err := readRanks(runCheckNative, filepath.Join(e.dir, runCheckNative+traceSuffix), e.ready)
	if err != nil {
		return nil, nil, err
	}
	if len(recorded) != len(native) {
		return nil, nil, fmt.Errorf("verify: %d ranks in check-native, %d in the artifact", len(recorded), len(native))
	}
	var more compile.Paddings
	for rank, part := range byRank(art) {
		found, err := compile.CompareNodes(part.Spec, recorded[rank], pads, settled)
		more = append(more, found...)
		if err == nil {
			err = skipped(native[rank].digest)
		}
		if err == nil {
			err = rewritten(native[rank].digest)
		}
		if err == nil {
			native[rank].computes, err = judge(native[rank].digest, e.alone > 0 && unstable(part.Spec))
		}
		if err != nil {
			return nil, nil, ofRank(rank, len(native), err)
		}
	}
	return native, more, nil
}

// tellVarying makes check-restored keep the results of graphs whose results vary.
func tellVarying(art *artifacts.Artifact, native *digest.Digest) {
	art.Verification.Graphs = nil
	for i := range native.Graphs {
		g := &native.Graphs[i]
		varies := slices.ContainsFunc(g.Ranges, func(r digest.Range) bool { return len(r.Varying) > 0 })
		art.Verification.Graphs = append(art.Verification.Graphs, artifacts.GraphCheck{Label: g.Label, NativeDeterministic: !varies})
	}
}

// proveRestored is check-restored of candidates at path, as often as the proof of the padding takes.
func (e *engine) proveRestored(ctx context.Context, path string, art *artifacts.Artifact, pads compile.Paddings, native []*checked) ([]*verification, error) {
	return provePadding(pads, func() ([]*verification, error) {
		if err := artifacts.Write(path, art); err != nil {
			return nil, err
		}
		return e.checkRestored(ctx, path, art, native)
	})
}

// checkRestored is check-restored: the same run with restored graphs. Its results are compared with those of check-native.
func (e *engine) checkRestored(ctx context.Context, path string, art *artifacts.Artifact, native []*checked) ([]*verification, error) {
	restored, err := e.check(ctx, runCheckRestored, contract.Start{Run: contract.RunCheckRestored, Artifact: path, Relax: e.relax.String()}, art)
	if err != nil {
		return nil, err
	}
	var all []*verification
	for rank, part := range byRank(art) {
		v, err := compareRuns(part, native[rank], restored[rank])
		if err != nil {
			return nil, ofRank(rank, len(restored), err)
		}
		all = append(all, v)
	}
	return all, nil
}

// compareRuns compares the files of one rank in check-native and check-restored.
func compareRuns(art *artifacts.Artifact, native, restored *checked) (*verification, error) {
	switch st := restored.status; {
	case st == nil:
		return nil, errors.New("verify: the start from the artifact left no status (its worker ended before it was ready)")
	case st.Status != status.Restored:
		return nil, fmt.Errorf("verify: the start from the artifact was native: %s: %s", st.Reason, st.Detail)
	}
	graphs, err := compareDigests(native.digest, restored.digest)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(native.selfTest, restored.selfTest) {
		return nil, errors.New("verify: the engine's self test gave other tokens with restored graphs than natively")
	}
	v := &verification{status: restored.status, nativeFree: native.digest.Free, restoredFree: restored.digest.Free}
	v.record = artifacts.Verification{Device: native.digest.Device, Graphs: graphs,
		Weights: restored.digest.Weights, Unchanged: restored.digest.Unchanged.Sum, UnchangedChunks: restored.digest.Unchanged.Chunks}
	if !native.computes {
		v.record.Results = NotCompared
	}
	v.record.NativeFree, v.record.RestoredFree = v.nativeFree, v.restoredFree
	v.record.Driver, _ = art.Identity.Get(artifacts.KeyDriverVersion)
	if native.selfTest != nil {
		sum := sha256.Sum256(native.selfTest)
		v.record.SelfTest = hex.EncodeToString(sum[:])
	}
	return v, nil
}

// checked is the files of one rank in one verifying run.
type checked struct {
	digest   *digest.Digest
	selfTest []byte         // nil: the engine has none
	status   *status.Status // check-restored only
	computes bool           // check-native only: results were compared
}

// The files of a verifying run.
const (
	digestFile   = "digest"
	selfTestFile = "selftest"
	statusFile   = "status"

	checkSuffix = "-files" // of their folder
)

// check makes a verifying run and reads the files of each rank of the artifact. They stay as long as the traces.
func (e *engine) check(ctx context.Context, name string, told contract.Start, art *artifacts.Artifact) ([]*checked, error) {
	dir := filepath.Join(e.dir, name+checkSuffix)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("verify (%s): %w", name, err)
	}
	var profiles []kvprofile.Profile
	for _, part := range byRank(art) {
		profiles = append(profiles, part.KV)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	told.KVBytes, told.WorkspaceBytes = sizes(profiles)
	told.CheckOut, told.SelfTestOut, told.Status = file(digestFile), file(selfTestFile), file(statusFile)
	if told.Peers = e.peers(name); told.Peers == "" {
		told.Rendezvous = dir
	}
	cfg := interpose.Config{Library: e.library, Mode: interpose.Replay, ExtraEnv: told.Environ()}
	if told.Run == contract.RunCheckNative {
		cfg.Mode, cfg.TracePath = interpose.Record, filepath.Join(e.dir, name+traceSuffix)
		if err := removeTraces(cfg.TracePath); err != nil {
			return nil, fmt.Errorf("verify (%s): %w", name, err)
		}
	}
	return after(e.run(ctx, name, cfg), func() ([]*checked, error) { return readChecked(dir, art) })
}

// readChecked reads the files of each rank in one verifying run.
func readChecked(dir string, art *artifacts.Artifact) ([]*checked, error) {
	var all []*checked
	for rank := range art.Ranks() {
		file := func(name string) string { return rankFile(filepath.Join(dir, name), rank, art.Ranks()) }
		// The digest is the last thing that a worker writes, and appears as a whole.
		d, err := digest.Read(file(digestFile))
		if err != nil {
			return nil, ofRank(rank, art.Ranks(), err)
		}
		c := &checked{digest: d}
		if c.selfTest, err = os.ReadFile(file(selfTestFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read self test: %w", err)
		}
		if c.status, err = status.Read(file(statusFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// restoredStages turns the phases of check-restored into stage times.
func (v *verification) restoredStages(driver string, now time.Time) artifacts.StageTimes {
	out := artifacts.StageTimes{Mode: "restored", Device: v.record.Device, Driver: driver, Date: now.Format(time.DateOnly)}
	phases := v.status.Phases
	for i := range phases[:max(0, len(phases)-1)] {
		out.Stages = appendStage(out.Stages, phases[i].Name, phases[i+1].Began-phases[i].Began)
	}
	return out
}

// appendStage adds seconds to the last stage if it has the same name. warmup and capture are one stage, as in the
// paper's Figure 2.
func appendStage(stages []artifacts.Stage, name string, seconds float64) []artifacts.Stage {
	if name == "warmup" {
		name = "capture"
	}
	if n := len(stages); n > 0 && stages[n-1].Name == name {
		stages[n-1].Seconds += seconds
		return stages
	}
	return append(stages, artifacts.Stage{Name: name, Seconds: seconds})
}

// launches returns how many kernels the triggering layer at the batch size launched in check-restored.
func (v *verification) launches(batch int64) uint32 {
	for _, t := range v.status.Triggers {
		if t.Batch == batch {
			return uint32(t.Launches)
		}
	}
	return 0
}
