package restore

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/restore/check"
)

// environment is the process's instructions, and the facts that follow from them.
type environment struct {
	contract.Start // files are this worker's own
	run            Run
	rank           rank
	kvBytes        uint64
	workspace      uint64
	check          check.Level
	relaxed        artifacts.Relaxed
}

// runs are the starts by purpose. To the engine, check-restored is a Restore run.
var runs = map[contract.Run]Run{
	"": None, contract.RunProfile: Profile, contract.RunRecord: Record, contract.RunCheckNative: Check,
	contract.RunCheckRestored: Restore, contract.RunRestore: Restore,
}

// needs lists the variables without which a start cannot serve its purpose.
func needs(s *contract.Start) map[string]string {
	switch s.Run {
	case contract.RunRestore:
		return map[string]string{contract.EnvArtifact: s.Artifact}
	case contract.RunCheckNative:
		return map[string]string{contract.EnvCheckOut: s.CheckOut, contract.EnvCheckPlan: s.CheckPlan}
	case contract.RunCheckRestored:
		return map[string]string{contract.EnvCheckOut: s.CheckOut, contract.EnvArtifact: s.Artifact}
	}
	return nil
}

// readEnvironment reads the variables of a start.
func readEnvironment() (environment, error) {
	start, err := contract.ReadStart(os.Getenv)
	if err != nil {
		return environment{}, err
	}
	env := environment{Start: *start, run: runs[start.Run]}
	if env.Engine > 0 && env.Engine >= env.Engines {
		return env, fmt.Errorf("read %s: engine %d of %d", contract.EnvEngine, env.Engine, env.Engines)
	}
	if env.rank, err = readRank(); err != nil {
		return env, err
	}
	if env.run == None {
		return env, nil
	}
	env.Native = ""
	for _, name := range slices.Sorted(maps.Keys(needs(start))) {
		if needs(start)[name] == "" {
			return env, fmt.Errorf("read %s: %s needs %s", contract.EnvRun, start.Run, name)
		}
	}
	if err := env.checkPeers(); err != nil {
		return env, err
	}
	env.CheckOut, env.SelfTestOut = env.rank.file(env.CheckOut), env.rank.file(env.SelfTestOut)
	if env.kvBytes, err = env.rank.size(contract.EnvKVBytes, env.KVBytes); err != nil {
		return env, err
	}
	if env.workspace, err = env.rank.size(contract.EnvWorkspaceBytes, env.WorkspaceBytes); err != nil {
		return env, err
	}
	if env.relaxed, err = artifacts.ParseRelaxed(env.Relax); err != nil {
		return env, fmt.Errorf("read %s: %w", contract.EnvRelax, err)
	}
	if env.check, err = check.ReadLevel(env.Check); err != nil {
		return env, err
	}
	if env.verifying() {
		env.Lazy, env.check = false, check.Full
	}
	if env.Lazy && env.check != check.None {
		return env, fmt.Errorf("read %s: graphs that are built later cannot be checked before ready (%s)", contract.EnvLazy, contract.EnvCheck)
	}
	return env, nil
}

// verifying reports whether Ready is to replay, hash and exit.
func (e *environment) verifying() bool {
	return e.Run == contract.RunCheckNative || e.Run == contract.RunCheckRestored
}
