package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"medusa/internal/printable"
	"medusa/serving/simulate"
)

func newPlanCmd() *cobra.Command {
	var o simulate.Overrides
	var format, log string
	var nodes []string
	var budget, miss, least float64
	cmd := &cobra.Command{
		Use:   "plan [SCENARIO]",
		Short: "Plan which artifacts to bake onto nodes and how many workers to keep warm",
		Long: `Ranks the artifacts of a scenario's models by requests per second × seconds that a restored start saves ÷ size, and keeps as
many as fit the budget of a node. Also gives the number of warm workers that keeps the probability of a request without a free
slot below a bound.

With -o labels it writes the nodes' labels for Kubernetes: artifact.medusa.io/MODEL on each node that is to have the artifact of MODEL. --node-names
names the scenario's nodes.

With --log it reads the decision log of medusa serve instead, and says which models to keep awake, asleep or baked (with an artifact). The
requests of the log are replayed in the simulator, as the server was and with each change. Each saving has an interval. If that
contains 0, no difference is shown and nothing is advised.`,
		Example: `  medusa plan serving/simulate/scenarios/ten-models.yaml --budget 0.05 --miss 0.01
  medusa plan scenario.yaml --budget 20 -o labels --node-names gpu-a,gpu-b | kubectl apply --server-side --field-manager medusa-plan -f -
  medusa plan --log decisions.jsonl --profiles profiles.yaml`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "table" && format != "json" && format != "labels" {
				return usageError{fmt.Errorf("unknown output %q: table, json or labels", format)}
			}
			if (format == "labels") != (len(nodes) > 0) || format == "labels" && log != "" {
				return usageError{errors.New("-o labels needs the nodes of a scenario by --node-names, and is the only output that takes them")}
			}
			if log != "" {
				return planFromLog(cmd, args, log, o.Profiles, least, format)
			}
			s, err := loadScenario(args, o)
			if err != nil {
				return err
			}
			p, err := simulate.MakePlan(s, budget, miss)
			if err != nil {
				return err
			}
			switch format {
			case "json":
				return printable.JSON(cmd.OutOrStdout(), p)
			case "labels":
				return p.WriteLabels(cmd.OutOrStdout(), nodes)
			}
			return writePlan(cmd.OutOrStdout(), p)
		},
	}
	scenarioFlags(cmd, &o)
	cmd.Flags().Float64Var(&budget, "budget", 1, "GB for artifacts on each node")
	cmd.Flags().Float64Var(&miss, "miss", 0.01, "probability that a request finds no free slot of a warm worker")
	cmd.Flags().StringVar(&log, "log", "", "plan from this decision log of medusa serve")
	cmd.Flags().Float64Var(&least, "least", 36, "with --log: seconds of waiting an hour that a change has to save")
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table, json or labels")
	cmd.Flags().StringSliceVar(&nodes, "node-names", nil, "with -o labels: names of the nodes in Kubernetes, in order")
	return cmd
}

func writePlan(w io.Writer, p *simulate.Plan) error {
	t := printable.NewTable(w)
	t.Row("artifact\treq/s\tsaves s\tsize GB\tvalue\tnodes")
	for _, c := range p.Choices {
		t.Row("%s\t%.4g\t%.3f\t%.4f\t%.4g\t%s", c.Model, c.Rate, c.Saved, c.SizeGB, c.Value, nodeList(c.Nodes))
	}
	t.Row("")
	for i, n := range p.Nodes {
		t.Row("node %d\t%.4f of %.4g GB\t%s", i, n.UsedGB, p.BudgetGB, strings.Join(n.Models, " "))
	}
	t.Row("")
	t.Row("function\tmean requests in service\twarm workers")
	for _, x := range p.Warm {
		t.Row("%s\t%.3f\t%d", x.Function, x.Load, x.Workers)
	}
	return t.Flush()
}

func nodeList(nodes []int) string {
	if len(nodes) == 0 {
		return "none"
	}
	return strings.Trim(fmt.Sprint(nodes), "[]")
}
