package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"medusa/internal/contract"
	"medusa/internal/printable"
	"medusa/restore/supervisor"
)

func newPsCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List running engines, and whether they were restored",
		Long: `Lists this user's engines that run under medusa restore, under medusa serve or with $` + contract.EnvArtifact + `, and how their starts went: restored, or
native with the reason. READY is the number of seconds from the engine's first phase until it was ready.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := supervisor.ListRunning()
			if err != nil {
				return err
			}
			switch format {
			case "json":
				return printable.JSON(cmd.OutOrStdout(), all)
			case "table":
			default:
				return usageError{fmt.Errorf("unknown output %q: table or json", format)}
			}
			t := printable.NewTable(cmd.OutOrStdout())
			t.Row("PROCESS\tRUNS FOR\tSTART\tREADY\tGRAPHS\tCOMMAND")
			for _, r := range all {
				start, ready, graphs := "not ready", "", ""
				if st := r.Status; st != nil {
					start = strings.TrimSuffix(st.Status+": "+st.Reason, ": ")
					graphs = fmt.Sprint(st.Graphs)
					for _, p := range st.Phases {
						if p.Name == "ready" {
							ready = fmt.Sprintf("%.1f s", p.Began)
						}
					}
				}
				command := r.Command
				if len(command) > 60 {
					command = command[:57] + "..."
				}
				t.Row("%d\t%s\t%s\t%s\t%s\t%s", r.Process, time.Since(r.Since).Round(time.Second).String(), start, ready, graphs, command)
			}
			return t.Flush()
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	return cmd
}
