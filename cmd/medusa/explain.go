package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"medusa/internal/printable"
	"medusa/materialize"
	"medusa/materialize/compile"
)

func newExplainCmd() *cobra.Command {
	var graph, output string
	var node, parameter, rank int
	cmd := &cobra.Command{
		Use:   "explain DIR --graph LABEL --node N --parameter P",
		Short: "Explain from kept traces how a kernel's parameter was classified",
		Long: `Shows one parameter of a recorded kernel node: the kernel's parameter layout, each word's value in record-a and record-b, the
allocation that it points into, and its neighbours. DIR is the directory of materialize --keep-traces. If materialize reports an
unproven word, its message names graph, node and parameter.`,
		Example: "  medusa explain traces --graph decode-8 --node 12 --parameter 0",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if graph == "" {
				return usageError{errors.New("explain needs --graph LABEL (medusa materialize names graph, node and parameter)")}
			}
			e, err := materialize.Explain(args[0], rank, graph, node, parameter)
			if err != nil {
				return err
			}
			switch output {
			case "json":
				return printable.JSON(cmd.OutOrStdout(), e)
			case "table":
				return writeExplanation(cmd.OutOrStdout(), e)
			}
			return usageError{fmt.Errorf("-o %s: want table or json", output)}
		},
	}
	cmd.Flags().StringVar(&graph, "graph", "", "the graph's label")
	cmd.Flags().IntVar(&node, "node", 0, "the node's index in the graph")
	cmd.Flags().IntVar(&parameter, "parameter", 0, "the parameter's index")
	cmd.Flags().IntVar(&rank, "rank", 0, "rank of the worker process")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func writeExplanation(w io.Writer, e *compile.Explanation) error {
	printable.Fprintf(w, "graph %q node %d kernel %s\n", e.Graph, e.Node, e.Kernel)
	for i, p := range e.Params {
		mark := ""
		if i == e.Parameter {
			mark = "  <-"
		}
		fmt.Fprintf(w, "  parameter %d: %d bytes at %d%s\n", i, p.Size, p.Offset, mark)
	}
	for _, word := range e.Words {
		fmt.Fprintf(w, "byte %d: %#x in record-a, %#x in record-b: %s\n", word.Offset, word.A, word.B, word.Verdict)
		for _, run := range []struct {
			name string
			near []compile.Neighbour
		}{{"record-a", word.NearA}, {"record-b", word.NearB}} {
			for _, n := range run.near {
				fmt.Fprintf(w, "  %s: %s#%d at %#x, %d bytes: the word points %s\n", run.name, n.Space, n.Alloc, n.Addr, n.Size, place(n))
			}
		}
	}
	return nil
}

// place says where a word points, seen from an allocation.
func place(n compile.Neighbour) string {
	switch {
	case n.Distance < 0:
		return fmt.Sprintf("%d bytes before its first byte", -n.Distance)
	case uint64(n.Distance) >= n.Size:
		return fmt.Sprintf("%d bytes behind its last byte", uint64(n.Distance)-n.Size+1)
	}
	return fmt.Sprintf("to its byte %d", n.Distance)
}
