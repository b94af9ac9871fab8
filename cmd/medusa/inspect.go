package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/interpose/trace"
)

func newInspectCmd() *cobra.Command {
	var format, graph string
	var text bool
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what an artifact or a trace holds",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "table" && format != "json" {
				return usageError{fmt.Errorf("unknown output %q: table or json", format)}
			}
			out := cmd.OutOrStdout()
			if trace.Is(args[0]) {
				return inspectTrace(out, args[0], format)
			}
			art, err := artifacts.Read(args[0])
			if err != nil {
				return err
			}
			switch {
			case text && graph != "":
				return usageError{errors.New("--text and --graph exclude each other")}
			case text:
				return art.Spec.WriteText(out)
			case graph != "":
				return writeGraph(out, art.Spec, graph, format)
			case format == "json":
				return writeJSON(out, summarize(args[0], art))
			}
			return writeSummary(out, args[0], art)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	cmd.Flags().StringVar(&graph, "graph", "", "show the nodes of the graph with this label")
	cmd.Flags().BoolVar(&text, "text", false, "print the whole graph IR as text")
	return cmd
}

// summary is the JSON form of an artifact's overview; fields are only ever added.
type summary struct {
	File         string                 `json:"file"`
	Created      string                 `json:"created"`
	Identity     map[string]string      `json:"identity"`
	KVBytes      uint64                 `json:"kv_bytes"`
	Graphs       int                    `json:"graphs"`
	Nodes        int                    `json:"nodes"`
	Pointers     int                    `json:"pointers"`
	Kernels      int                    `json:"kernels"`
	Modules      int                    `json:"modules"`
	Allocations  int                    `json:"allocations"`
	Contents     int                    `json:"permanent_buffers"`
	ContentBytes int                    `json:"permanent_bytes"`
	Triggers     []graphir.Trigger      `json:"triggers"`
	Stages       []artifacts.StageTimes `json:"stages"`
	Verification artifacts.Verification `json:"verification"`
}

func summarize(path string, art *artifacts.Artifact) summary {
	s := summary{
		File: path, Created: art.Created.Format("2006-01-02T15:04:05Z07:00"), Identity: map[string]string{},
		KVBytes: art.KV.KVBytes, Graphs: len(art.Spec.Graphs), Kernels: len(art.Spec.Kernels), Modules: len(art.Spec.Modules),
		Allocations: len(art.Spec.Allocations), Contents: len(art.Spec.Contents), Triggers: art.Spec.Triggers,
		Stages: art.Stages, Verification: art.Verification,
	}
	for _, f := range art.Identity {
		s.Identity[f.Key] = f.Value
	}
	for i := range art.Spec.Graphs {
		s.Nodes += len(art.Spec.Graphs[i].Nodes)
		for _, n := range art.Spec.Graphs[i].Nodes {
			if n.Kernel != nil {
				s.Pointers += len(n.Kernel.Fixups)
			}
		}
	}
	for _, c := range art.Spec.Contents {
		s.ContentBytes += len(c.Data)
	}
	return s
}

func writeSummary(w io.Writer, path string, art *artifacts.Artifact) error {
	s := summarize(path, art)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "artifact\t%s\n", s.File)
	for _, f := range art.Identity {
		fmt.Fprintf(t, "  %s\t%s\n", f.Key, f.Value)
	}
	fmt.Fprintf(t, "graphs\t%d with %d nodes, %d pointers\n", s.Graphs, s.Nodes, s.Pointers)
	fmt.Fprintf(t, "kernels\t%d in %d modules\n", s.Kernels, s.Modules)
	fmt.Fprintf(t, "allocations\t%d, of which %d saved ranges hold %d bytes\n", s.Allocations, s.Contents, s.ContentBytes)
	fmt.Fprintf(t, "KV cache\t%d bytes\n", s.KVBytes)
	for _, tr := range s.Triggers {
		fmt.Fprintf(t, "trigger\tfirst layer at batch %d (%d launches)\n", tr.Batch, tr.Launches)
	}
	for _, st := range s.Stages {
		fmt.Fprintf(t, "stages, %s\ton %s, %s\n", st.Mode, st.Device, st.Date)
		for _, x := range st.Stages {
			fmt.Fprintf(t, "  %s\t%.3f s\n", x.Name, x.Seconds)
		}
	}
	fmt.Fprintf(t, "verified\t%d graphs on %s, driver %s\n", len(s.Verification.Graphs), s.Verification.Device, s.Verification.Driver)
	return t.Flush()
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// writeGraph lists one graph's nodes with their kernels and pointers.
func writeGraph(w io.Writer, spec *graphir.Spec, label, format string) error {
	for i := range spec.Graphs {
		g := &spec.Graphs[i]
		if g.Label != label {
			continue
		}
		if format == "json" {
			return writeJSON(w, g)
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "NODE\tKERNEL\tGRID\tBLOCK\tPOINTERS")
		for n, node := range g.Nodes {
			switch k := node.Kernel; {
			case k != nil:
				fmt.Fprintf(t, "%d\t%s\t%v\t%v\t%s\n", n, spec.Kernels[k.Kernel].Name, k.Grid, k.Block, pointers(k.Fixups))
			case node.Memset != nil:
				fmt.Fprintf(t, "%d\tmemset\t\t\talloc#%d+%d\n", n, node.Memset.Dst.Alloc, node.Memset.Dst.Offset)
			case node.Memcpy != nil:
				fmt.Fprintf(t, "%d\tmemcpy\t\t\talloc#%d+%d <- alloc#%d+%d\n", n, node.Memcpy.Dst.Pointer.Alloc, node.Memcpy.Dst.Pointer.Offset,
					node.Memcpy.Src.Pointer.Alloc, node.Memcpy.Src.Pointer.Offset)
			default:
				fmt.Fprintf(t, "%d\tempty\t\t\t\n", n)
			}
		}
		return t.Flush()
	}
	return fmt.Errorf("inspect graph %q: no graph has this label", label)
}

func pointers(fixups []graphir.Fixup) string {
	s := ""
	for _, f := range fixups {
		s += fmt.Sprintf("alloc#%d+%d ", f.Pointer.Alloc, f.Pointer.Offset)
	}
	return s
}
