package engine

import (
	"medusa/artifacts"
	"medusa/restore"
	"medusa/runners/reference/marks"
)

// Name and Version identify this engine. Graphs of another form are a new version.
const (
	Name    = "medusa-reference"
	Version = "1"
)

// identify states the factors that graphs of this engine are valid for. The session reports a mismatch: the start goes on
// natively.
func (e *Engine) identify() error {
	if e.session.Run() == restore.None {
		return nil // no session needs the factors, and the digest of a checkpoint takes time
	}
	if e.options.KV == KVElastic {
		block := kvBlockBytes(e.config, e.options.PageSize, e.storage)
		ranges := newKVRanges(2*e.config.Layers, 0, block/uint64(2*e.config.Layers), e.options.maxBlocks()+1, nil)
		e.session.Elastic(ranges.bytesOf(ranges.least), block)
	}
	factors := artifacts.Identity{
		{Key: artifacts.KeyEngineName, Value: Name},
		{Key: artifacts.KeyEngineVersion, Value: Version},
		{Key: artifacts.KeyModelConfig, Value: e.config.Digest},
		{Key: artifacts.KeyEngineArgs, Value: e.options.args() + " dtype=" + string(elements[e.storage].name)},
	}
	weights, err := e.weightsFactor()
	if err != nil {
		return err
	}
	if weights != "" {
		factors = append(factors, artifacts.Factor{Key: artifacts.KeyModelCheckpoint, Value: weights})
	}
	err = marks.Medusa(func() error { return e.session.Identify(factors) })
	if e.session.Run() == restore.Restore && e.session.Exit() == nil {
		return nil
	}
	return err
}

// weightsFactor is what the identity says of the weights' contents; empty: nothing, since any contents fit.
func (e *Engine) weightsFactor() (string, error) {
	e.otherWeights = e.session.Weights() == restore.OtherWeights
	switch {
	case e.checkpoint == nil:
		return "none", nil // memory that nobody fills proves nothing about other contents
	case e.otherWeights:
		return "other", nil
	case e.session.Weights() == restore.CountedWeights:
		return e.checkpoint.Digest()
	}
	return "", nil
}
