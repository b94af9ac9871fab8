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
	"time"

	"medusa/artifacts"
	"medusa/interpose"
	"medusa/restore/digest"
	"medusa/restore/status"
)

// Verify repeats runs N and V for an artifact that exists. The error is a *DigestError where memory differs.
func Verify(ctx context.Context, o Options, path string, art *artifacts.Artifact) (artifacts.Verification, error) {
	dir, remove, err := scratch()
	if err != nil {
		return artifacts.Verification{}, fmt.Errorf("verify %s: %w", path, err)
	}
	defer remove()
	path, err = filepath.Abs(path)
	if err != nil {
		return artifacts.Verification{}, fmt.Errorf("verify %s: %w", path, err)
	}
	e := &engine{argv: o.Argv, library: o.Library, dir: dir, log: o.Log}
	v, err := verify(ctx, e, path, art, func(i int, what string) { o.Step(i, 2, what) })
	if err != nil {
		return artifacts.Verification{}, err
	}
	return v.record, nil
}

// verification is what runs N and V showed.
type verification struct {
	record artifacts.Verification
	status *status.Status
	// Device memory left once the self test was served: both runs hold what they keep, temporaries are gone in both.
	nativeFree, restoredFree uint64
}

// verify starts the engine natively (N) and restored (V), lets both replay every graph on the same data and serve the
// engine's self test, and compares what they left.
func verify(ctx context.Context, e *engine, path string, art *artifacts.Artifact, step func(i int, what string)) (*verification, error) {
	step(0, "run N: replay native graphs")
	native, err := e.checkNative(ctx, path, art)
	if err != nil {
		return nil, err
	}
	step(1, "run V: replay restored graphs")
	return e.checkRestored(ctx, path, art, native)
}

// checkNative is run N.
func (e *engine) checkNative(ctx context.Context, path string, art *artifacts.Artifact) (*checked, error) {
	native, err := e.check(ctx, "N", "MEDUSA_CHECK_PLAN="+path, art.KV.KVBytes)
	if err != nil {
		return nil, err
	}
	return native, rewritten(native.digest)
}

// checkRestored is run V, held against run N.
func (e *engine) checkRestored(ctx context.Context, path string, art *artifacts.Artifact, native *checked) (*verification, error) {
	restored, err := e.check(ctx, "V", "MEDUSA_ARTIFACT="+path, art.KV.KVBytes)
	if err != nil {
		return nil, err
	}
	if restored.status == nil || restored.status.Status != status.Restored {
		return nil, fmt.Errorf("verify: run V did not restore (%+v)", restored.status)
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
		Unchanged: restored.digest.Unchanged.Sum, UnchangedChunks: restored.digest.Unchanged.Chunks}
	v.record.Driver, _ = art.Identity.Get(artifacts.KeyDriverVersion)
	if native.selfTest != nil {
		sum := sha256.Sum256(native.selfTest)
		v.record.SelfTest = hex.EncodeToString(sum[:])
	}
	return v, nil
}

// checked is what one verifying run left.
type checked struct {
	digest   *digest.Digest
	selfTest []byte         // nil: the engine has none
	status   *status.Status // run V only
}

func (e *engine) check(ctx context.Context, name, what string, kvBytes uint64) (*checked, error) {
	file := func(suffix string) string { return filepath.Join(e.dir, name+suffix) }
	cfg := interpose.Config{Library: e.library, Mode: interpose.Replay, ExtraEnv: []string{
		"MEDUSA_RUN=check", what, fmt.Sprintf("MEDUSA_KV_BYTES=%d", kvBytes),
		"MEDUSA_CHECK_OUT=" + file(".digest"), "MEDUSA_SELFTEST_OUT=" + file(".selftest"), "MEDUSA_STATUS=" + file(".status"),
	}}
	for _, suffix := range []string{".digest", ".selftest", ".status"} {
		if err := os.Remove(file(suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("verify run %s: %w", name, err)
		}
	}
	// The digest is the last thing that the engine's process writes, and appears as a whole.
	var c checked
	var err error
	c.digest, err = after(e.run(ctx, name, cfg), func() (*digest.Digest, error) { return digest.Read(file(".digest")) })
	if err != nil {
		return nil, err
	}
	if c.selfTest, err = os.ReadFile(file(".selftest")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read self test: %w", err)
	}
	if c.status, err = status.Read(file(".status")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return &c, nil
}

// restoredStages turns the phases of run V into stage times.
func (v *verification) restoredStages(driver string, now time.Time) artifacts.StageTimes {
	out := artifacts.StageTimes{Mode: "restored", Device: v.record.Device, Driver: driver, Date: now.Format(time.DateOnly)}
	phases := v.status.Phases
	for i := range phases[:max(0, len(phases)-1)] {
		out.Stages = appendStage(out.Stages, phases[i].Name, phases[i+1].Began-phases[i].Began)
	}
	return out
}

// appendStage adds seconds to the last stage where it has the same name. warmup and capture are one stage, as in the
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

// launches returns how many kernels the triggering layer at the batch size launched in run V.
func (v *verification) launches(batch int64) uint32 {
	for _, t := range v.status.Triggers {
		if t.Batch == batch {
			return uint32(t.Launches)
		}
	}
	return 0
}
