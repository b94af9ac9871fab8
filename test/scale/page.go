package main

import (
	"fmt"
	"runtime"
	"strings"
)

// page is a file of docs/results.
func (s *size) page(path, table string, slowest float64) string {
	var out strings.Builder
	fmt.Fprintf(&out, `# A large cluster in virtual time

    make scale GPUS=%d MODELS=%d RATE=%g SECONDS=%g SEEDS=%d POLICIES=%s PAGE=%s

%d GPUs of eight a node, %d models of ten kinds with the [costs of an A100](../../serving/simulate/profiles/medusa-a100.yaml), %g requests a second in bursts for
%g s: gaps with a coefficient of variation of 3, as functions of Azure's traces have them, and popularity by Zipf's law. The arrivals are drawn,
not Azure's own. The policies decide through package `+"`dispatch`"+`, as in `+"`medusa serve`"+` and `+"`medusa-picker`"+`.

*Decisions a second* is requests by processor time on one processor (`+"`GOMAXPROCS=1`"+`), the simulation of all engines included. So decisions alone are
cheaper. The aim is 20,000; the slowest made %.0f. The machine has %d processors. *In %g s* is
the share of requests whose first token came in that time.`, s.gpus, s.functions, s.rate, s.seconds, s.seeds, strings.Join(s.policies, ","), path,
		s.gpus, s.functions, s.rate, s.seconds, slowest, runtime.NumCPU(), deadline)
	if s.seeds > 1 {
		fmt.Fprintf(&out, " Values are means over %d seeds of arrivals, with 95 %% intervals (Student's t).", s.seeds)
	}
	fmt.Fprintf(&out, `

%s
[What the figures show](../gateway.md#a-thousand-gpus)
`, table)
	return out.String()
}
