package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// As an engine of several workers, the zoo starts itself once a rank and prints the results of all of them:
//
//	ZOO_WORKERS   how many
//	ZOO_UNRANKED  "last" or "all": workers that are not told their rank
//	ZOO_ODD       a variable (NAME=VALUE) that only the last worker has

// together is printed by several workers in place of result.
type together struct {
	result           // restored: all are; output: of all, in the order of ranks
	Workers []result `json:"workers"`
}

// workers returns how many are to be started; 0: this process is one itself.
func workers() int {
	n, err := strconv.Atoi(os.Getenv("ZOO_WORKERS"))
	if err != nil || n < 2 || os.Getenv("ZOO_WORKER") != "" {
		return 0
	}
	return n
}

// startWorkers runs all workers to their end. It fails as the first of them that failed.
func startWorkers(n int) error {
	outs, cmds := make([]bytes.Buffer, n), make([]*exec.Cmd, n)
	for i := range cmds {
		last := i == n-1
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ZOO_WORKER=1")
		if how := os.Getenv("ZOO_UNRANKED"); how != "all" && (how != "last" || !last) {
			cmd.Env = append(cmd.Env, fmt.Sprintf("MEDUSA_RANK=%d", i), fmt.Sprintf("MEDUSA_WORLD_SIZE=%d", n))
		}
		if odd := os.Getenv("ZOO_ODD"); odd != "" && last {
			cmd.Env = append(cmd.Env, odd)
		}
		cmd.Stdout, cmd.Stderr = &outs[i], os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		cmds[i] = cmd
	}
	var failed error
	for _, cmd := range cmds {
		if err := cmd.Wait(); failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return failed
	}
	all := together{result: result{Restored: true}}
	for i := range outs {
		if outs[i].Len() == 0 {
			return nil // a run that ends at ready
		}
		var r result
		if err := json.Unmarshal(outs[i].Bytes(), &r); err != nil {
			return fmt.Errorf("read worker %d: %w", i, err)
		}
		all.Workers = append(all.Workers, r)
		all.Restored = all.Restored && r.Restored
		all.Output = strings.TrimPrefix(all.Output+" "+r.Output, " ")
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// exitCode is a failed worker's own code, which medusa restore then sees.
func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	return 1
}

// rank makes the workers' weights and graphs differ.
func rank() int {
	n, _ := strconv.Atoi(os.Getenv("MEDUSA_RANK"))
	return n
}
