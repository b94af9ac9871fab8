package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"medusa/internal/printable"
	"medusa/serving/gateway"
)

func newAgentCmd() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "agent CONFIG",
		Short: "Run the engines of this machine for an endpoint picker",
		Long: `Runs the engines of this machine for medusa-picker, which decides for many machines which request runs where. Each GPU has a port. A request
that comes there has a ticket of the picker, and is held while its engine starts, wakes or is full. The file is that of medusa serve, with a
section agent: the addresses of the ports, and a secret that the picker has, too.

SIGTERM lets requests end that are on their way, and stops all engines. However the command ends, no engine stays behind.`,
		Example: `  medusa agent --check agent.yaml
  medusa agent agent.yaml`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := gateway.Load(args[0])
			if err != nil {
				return err
			}
			n, err := gateway.NewNode(spec, gateway.Options{Out: cmd.ErrOrStderr()})
			if err != nil {
				return err
			}
			if check {
				n.Close()
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: models %d, GPUs %d: valid\n", args[0], len(spec.Models), len(spec.GPUs))
				return err
			}
			listeners, err := n.Listen()
			if err != nil {
				n.Close()
				return err
			}
			for i, l := range listeners {
				printable.Fprintf(cmd.ErrOrStderr(), "medusa: GPU %s at http://%s\n", spec.GPUs[i], l.Addr())
			}
			return n.Serve(cmd.Context(), listeners)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only check the file and the secret")
	return cmd
}
