package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/printable"
	"medusa/interpose/trace"
)

// version is what this binary is and speaks; its JSON form only ever gains fields.
type version struct {
	Medusa   string `json:"medusa"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified"` // built from a tree with changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Artifact int    `json:"artifact_format"` // the newest that it reads
	Graph    int    `json:"graph_format"`
	Trace    int    `json:"trace_format"`
	Protocol int    `json:"protocol"` // between interposer and engine
}

func newVersionCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the versions of the formats that it reads",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			v := versionOf(info)
			switch format {
			case "json":
				return printable.JSON(cmd.OutOrStdout(), v)
			case "table":
				return v.write(cmd.OutOrStdout())
			}
			return usageError{fmt.Errorf("unknown output %q: table or json", format)}
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	return cmd
}

// versionOf reads what the Go tool wrote into the binary; info is nil where it wrote nothing.
func versionOf(info *debug.BuildInfo) version {
	v := version{Medusa: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Artifact: artifacts.Version, Graph: graphir.Version, Trace: trace.Version, Protocol: contract.Protocol}
	if info == nil {
		return v
	}
	if info.Main.Version != "" {
		v.Medusa = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v version) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "medusa\t%s\n", v.Medusa)
	if v.Commit != "" {
		modified := ""
		if v.Modified {
			modified = ", modified"
		}
		fmt.Fprintf(t, "commit\t%s%s\n", v.Commit, modified)
	}
	fmt.Fprintf(t, "built with\t%s for %s\n", v.Go, v.Platform)
	fmt.Fprintf(t, "formats\tartifact %d, graph %d, trace %d\n", v.Artifact, v.Graph, v.Trace)
	fmt.Fprintf(t, "protocol\t%d\n", v.Protocol)
	return t.Flush()
}
