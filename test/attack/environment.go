package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// intruders are variables that have a meaning for another kind of run, or for the interposer. If an environment has them, as
// containers hand theirs down, they must not change the start of a server.
func intruders(p *place) []string {
	return []string{
		"MEDUSA_CHECK_OUT=" + filepath.Join(p.out, "digests"), "MEDUSA_SELFTEST_OUT=" + filepath.Join(p.out, "tokens"),
		"MEDUSA_CHECK_PLAN=" + filepath.Join(p.out, "plan"), "MEDUSA_RUN=record", "MEDUSA_RUN=check", "MEDUSA_MODE=record",
		"MEDUSA_TRACE=" + filepath.Join(p.outside, "trace"), "MEDUSA_AT_READY=exit", "MEDUSA_AT_IDENTITY=exit", "MEDUSA_KV_BYTES=1",
		"MEDUSA_WORKSPACE_BYTES=1", "MEDUSA_GAP_SEED=7", "MEDUSA_UNMARKED=" + filepath.Join(p.outside, "pipe"), "MEDUSA_STRICT=0",
		"MEDUSA_STATUS=" + filepath.Join(p.outside, "status"), "MEDUSA_BEGAN=1", "MEDUSA_EXACT=0x1000:0x1000",
		"MEDUSA_RENDEZVOUS=" + filepath.Join(p.outside, "etc"), "MEDUSA_ARTIFACT=" + filepath.Join(p.outside, "etc"),
	}
}

// shared are the intruders that an engine may inherit: the beginning of a start, and the place at which ranks meet.
var shared = []string{"MEDUSA_BEGAN=", "MEDUSA_RENDEZVOUS="}

// environment starts an engine with each of them, restored from an unchanged artifact. A second engine prints its
// environment, which must not have the variable.
func environment(ctx context.Context, a *attacker) error {
	counts := map[string]int{}
	list := intruders(&place{})
	for i := range list {
		p, err := a.newPlace()
		if err != nil {
			return err
		}
		b, variable := a.bases[0], intruders(p)[i]
		e, err := p.run(ctx, append([]string{variable}, b.env...), "medusa", "restore", b.path, "--", filepath.Join(a.build, "zoo"))
		if err != nil {
			return err
		}
		where := "environment with " + list[i]
		if output, err := outputOf(e.stdout); err != nil || output != b.output || e.code != 0 {
			a.found(unserved, where, "exit %d: %s", e.code, lastLine(e.stderr))
			counts[broken]++
		} else {
			counts["served"]++
		}
		e, err = p.run(ctx, []string{variable}, "medusa", "restore", b.path, "--", "/usr/bin/env")
		if err != nil {
			return err
		}
		inherits := slices.ContainsFunc(shared, func(prefix string) bool { return strings.HasPrefix(variable, prefix) })
		if !inherits && slices.Contains(strings.Split(e.stdout, "\n"), variable) {
			a.found(unserved, where, "the engine has it")
			counts["inherited"]++
		}
		if err := p.close(a.tally, where); err != nil {
			return err
		}
	}
	a.try(len(list))
	a.line("variables of the environment", counts)
	return nil
}
