package restore

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"medusa/artifacts"
)

// environment is what the process was told (docs/architecture.md).
type environment struct {
	run         Run
	rank        rank
	kvBytes     uint64
	workspace   uint64
	artifact    string
	checkOut    string
	plan        string
	selfTestOut string
	strict      bool
	lazy        bool
	check       checkLevel
	status      string
	began       time.Time // zero: with the first phase
	relaxed     artifacts.Relaxed
	rendezvous  string
	native      string // why the parent started this process natively: a reason, a colon, and the detail
}

// readEnvironment reads the MEDUSA_ variables of this package. MEDUSA_RUN=check together with an artifact is run V,
// which to the engine is a Restore run.
func readEnvironment() (environment, error) {
	env := environment{
		artifact:    os.Getenv("MEDUSA_ARTIFACT"),
		checkOut:    os.Getenv("MEDUSA_CHECK_OUT"),
		plan:        os.Getenv("MEDUSA_CHECK_PLAN"),
		selfTestOut: os.Getenv("MEDUSA_SELFTEST_OUT"),
		strict:      os.Getenv("MEDUSA_STRICT") == "1",
		lazy:        os.Getenv("MEDUSA_LAZY") == "1",
		status:      os.Getenv("MEDUSA_STATUS"),
		rendezvous:  os.Getenv("MEDUSA_RENDEZVOUS"),
	}
	if v := os.Getenv("MEDUSA_BEGAN"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return env, fmt.Errorf("read MEDUSA_BEGAN: %w", err)
		}
		env.began = time.Unix(0, n)
	}
	switch run := os.Getenv("MEDUSA_RUN"); run {
	case "":
		return environment{status: env.status, began: env.began, native: os.Getenv("MEDUSA_NATIVE")}, nil
	case "profile":
		env.run = Profile
	case "record":
		env.run = Record
	case "restore":
		env.run = Restore
	case "check":
		env.run = Check
		if env.checkOut == "" {
			return env, fmt.Errorf("read MEDUSA_RUN: check needs MEDUSA_CHECK_OUT")
		}
		if env.artifact != "" {
			env.run = Restore
		} else if env.plan == "" {
			return env, fmt.Errorf("read MEDUSA_RUN: check needs MEDUSA_CHECK_PLAN or MEDUSA_ARTIFACT")
		}
	default:
		return env, fmt.Errorf("read MEDUSA_RUN: %q is none of profile, record, check, restore", run)
	}
	if env.run == Restore && env.artifact == "" {
		return env, fmt.Errorf("read MEDUSA_RUN: restore needs MEDUSA_ARTIFACT")
	}
	var err error
	if env.rank, err = readRank(); err != nil {
		return env, err
	}
	env.checkOut, env.selfTestOut = env.rank.file(env.checkOut), env.rank.file(env.selfTestOut)
	if env.rank.index > 0 { // rank 0 speaks for the start: all ranks start alike
		env.status = env.rank.file(env.status)
	}
	if env.kvBytes, err = env.rank.size("MEDUSA_KV_BYTES"); err != nil {
		return env, err
	}
	if env.workspace, err = env.rank.size("MEDUSA_WORKSPACE_BYTES"); err != nil {
		return env, err
	}
	if env.relaxed, err = artifacts.ParseRelaxed(os.Getenv("MEDUSA_RELAX")); err != nil {
		return env, fmt.Errorf("read MEDUSA_RELAX: %w", err)
	}
	if env.check, err = readCheckLevel(os.Getenv("MEDUSA_CHECK")); err != nil {
		return env, err
	}
	if env.verifying() {
		env.lazy, env.check = false, checkFull
	}
	if env.lazy && env.check != checkNone {
		return env, fmt.Errorf("read MEDUSA_LAZY: graphs that are built later cannot be checked before ready (MEDUSA_CHECK)")
	}
	// The two runs that verify are told apart by Run alone; digests go out in those only.
	if env.run == Profile || env.run == Record {
		env.checkOut, env.plan, env.selfTestOut = "", "", ""
	}
	return env, nil
}

// verifying reports whether Ready is to replay, hash and exit.
func (e environment) verifying() bool { return e.checkOut != "" }
