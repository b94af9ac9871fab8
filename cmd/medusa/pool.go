package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"medusa/internal/printable"
	"medusa/interpose"
	"medusa/restore/pool"
)

func newPoolCmd() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "pool CONFIG",
		Short: "Keep processes ready that have imported an engine's modules",
		Long: `Keeps processes that have imported the modules of a YAML file's engines, and hands each to one medusa restore --pool, over a Unix socket that only
this user may use. A process is handed over only if it is what a new one would be: its environment, folder, limits, and whatever else its imports depended on.

The pool imports one process at a time, at low priority, and none soon after a start. SIGTERM ends the processes that wait; those that
were handed over go on.`,
		Example: `  medusa pool pool.yaml
  medusa pool status /run/user/1000/medusa/pool.sock
  medusa restore --pool /run/user/1000/medusa/pool.sock llama.medusa -- vllm serve llama`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			library, err := interpose.FindLibrary()
			if err != nil {
				return err
			}
			spec, err := pool.Load(args[0], library)
			if err != nil {
				return err
			}
			if check {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: engines %d: valid\n", args[0], len(spec.Engines))
				return err
			}
			l, err := pool.Listen(spec.Socket)
			if err != nil {
				return err
			}
			printable.Fprintf(cmd.ErrOrStderr(), "medusa: pool of %d engines at %s\n", len(spec.Engines), spec.Socket)
			return pool.New(spec, cmd.ErrOrStderr()).Serve(cmd.Context(), l)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only check the file")
	cmd.AddCommand(newPoolStatusCmd())
	return cmd
}

func newPoolStatusCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status SOCKET",
		Short: "Print what a pool has and has done",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := pool.ReadStatus(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(s)
			}
			return printPool(cmd.OutOrStdout(), s)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printPool(w io.Writer, s *pool.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "engine\tready\tmemory\timport\tstarted\trefused\tstale\tfailed")
	for _, e := range s.Engines {
		printable.Fprintf(t, "%s\t%d/%d\t%.1f MiB\t%.1f s\t%d\t%d\t%d\t%d\n", e.Name, e.Ready, e.Size, float64(e.PSS)/(1<<20), e.Counts.ImportSeconds,
			e.Counts.Started, e.Counts.Refused, e.Counts.Stale, e.Counts.Failed)
	}
	return t.Flush()
}
