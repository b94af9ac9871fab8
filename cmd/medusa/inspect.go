package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/inspect"
	"medusa/inspect/draw"
	"medusa/internal/printable"
	"medusa/internal/private"
	"medusa/interpose/trace"
)

// inspection is one run of inspect: at most one view, or the picture of one graph.
type inspection struct {
	format, graph, svg, dot            string
	kernels, allocations, sizes, whole bool
	rank                               int
}

func newInspectCmd() *cobra.Command {
	var o inspection
	cmd := &cobra.Command{
		Use:   "inspect ARTIFACT",
		Short: "Show the contents of an artifact or a trace",
		Long: `Shows an artifact's overview or one of its parts. Parameters of a graph's nodes are shown by the kernel's layout, as constants
or as pointers: alloc#3+256 is byte 256 of allocation 3, counted from 0 in the order in which the engine made them.`,
		Example: `  medusa inspect llama.medusa
  medusa inspect --graph "decode 8" -o json llama.medusa
  medusa inspect --graph 0 --svg graph.svg llama.medusa`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return usageError{err}
			}
			if trace.Is(args[0]) {
				if o.views() > 0 {
					return usageError{errors.New("a trace has no view but the overview")}
				}
				return inspectTrace(cmd.OutOrStdout(), args[0], o.format)
			}
			return o.run(cmd.OutOrStdout(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.format, "output", "o", "table", "table or json")
	f.StringVar(&o.graph, "graph", "", "show the nodes of the graph with this label or index")
	f.BoolVar(&o.kernels, "kernels", false, "show the kernel-name table")
	f.BoolVar(&o.allocations, "allocs", false, "show the allocation sequence")
	f.BoolVar(&o.sizes, "sizes", false, "show the size of each section and of each graph")
	f.BoolVar(&o.whole, "text", false, "print the whole graph IR as text")
	f.StringVar(&o.svg, "svg", "", "with --graph: write a picture to this file (- is standard output)")
	f.StringVar(&o.dot, "dot", "", "with --graph: write the graph for Graphviz to this file (- is standard output)")
	rankFlag(cmd, &o.rank)
	_ = cmd.RegisterFlagCompletionFunc("graph", completeGraphs)
	return cmd
}

func (o *inspection) views() int {
	n := 0
	for _, set := range []bool{o.graph != "", o.kernels, o.allocations, o.sizes, o.whole} {
		if set {
			n++
		}
	}
	return n
}

func (o *inspection) check() error {
	switch {
	case o.format != "table" && o.format != "json":
		return fmt.Errorf("unknown output %q: table or json", o.format)
	case o.views() > 1:
		return errors.New("--graph, --kernels, --allocs, --sizes and --text exclude each other")
	case (o.svg != "" || o.dot != "") && o.graph == "":
		return errors.New("--svg and --dot need --graph")
	case o.svg == "-" && o.dot == "-":
		return errors.New("--svg and --dot cannot both go to standard output")
	}
	return nil
}

// view can be written as a table. Its JSON form is its own encoding.
type view interface{ WriteTable(io.Writer) error }

func (o *inspection) run(out io.Writer, path string) error {
	art, sections, err := readSections(path, o.rank)
	if err != nil {
		return err
	}
	var v view
	switch {
	case o.whole:
		return art.Spec.WriteText(out)
	case o.graph != "":
		g, err := inspect.FindGraph(art.Spec, o.graph)
		if err != nil {
			return err
		}
		if o.svg != "" || o.dot != "" {
			return o.draw(out, g)
		}
		v = g
	case o.kernels:
		v, err = inspect.ListKernels(art.Spec)
	case o.allocations:
		v, err = inspect.ListAllocations(art.Spec)
	case o.sizes:
		v, err = inspect.Measure(sections, art.Spec)
	default:
		v, err = inspect.Summarize(path, art)
	}
	if err != nil {
		return err
	}
	if o.format == "json" {
		return printable.JSON(out, v)
	}
	return v.WriteTable(out)
}

func (o *inspection) draw(out io.Writer, g *inspect.Graph) error {
	if o.svg != "" {
		if err := toFile(out, o.svg, func(w io.Writer) error { return draw.SVG(w, g) }); err != nil {
			return err
		}
	}
	if o.dot != "" {
		return toFile(out, o.dot, func(w io.Writer) error { return draw.DOT(w, g) })
	}
	return nil
}

// rankFlag adds --rank, which selects one worker process.
func rankFlag(cmd *cobra.Command, rank *int) {
	cmd.Flags().IntVar(rank, "rank", 0, "worker process to show, if the artifact has several")
}

// readSections reads one rank of an artifact, and the sizes of the artifact's sections.
func readSections(path string, rank int) (*artifacts.Artifact, []artifacts.Section, error) {
	art, err := artifacts.Read(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := artifacts.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if rank < 0 || rank >= art.Ranks() {
		return nil, nil, usageError{fmt.Errorf("--rank %d: %s has %d ranks", rank, path, art.Ranks())}
	}
	return art.Rank(rank), f.Sections(), nil
}

// toFile writes to a file, or to out if the path is "-".
func toFile(out io.Writer, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(out)
	}
	f, err := private.Create(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Close()
}

func writeSummary(w io.Writer, path string, art *artifacts.Artifact) error {
	s, err := inspect.Summarize(path, art)
	if err != nil {
		return err
	}
	return s.WriteTable(w)
}
