package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/printable"
	"medusa/interpose/trace"
)

// release is the newest version that CHANGELOG.md describes.
const release = "v0.2.0"

// version describes this binary and the formats that it reads. Its JSON form only ever gains fields.
type version struct {
	Medusa   string `json:"medusa"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified"` // the source tree had uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Artifact int    `json:"artifact_format"` // the newest version that it reads
	Graph    int    `json:"graph_format"`
	Trace    int    `json:"trace_format"`
	Protocol int    `json:"protocol"` // between interposer and engine
}

func newVersionCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of Medusa and of the formats that it reads",
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

// versionOf takes the version from the build information of the Go tool. Without one (info is nil, or the build saw no tag) the
// version is the one in the source.
func versionOf(info *debug.BuildInfo) version {
	v := version{Medusa: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Artifact: artifacts.Version, Graph: graphir.Version, Trace: trace.Version, Protocol: contract.Protocol}
	if info == nil {
		return v
	}
	if tag := info.Main.Version; tag != "" && tag != "(devel)" && !strings.HasPrefix(tag, "v0.0.0-") {
		v.Medusa = tag
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
