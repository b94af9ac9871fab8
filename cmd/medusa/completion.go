package main

import (
	"strings"

	"github.com/spf13/cobra"

	"medusa/artifacts"
)

// artifactArgs has the commands whose first arguments are artifacts, and how many.
var artifactArgs = map[string]int{"inspect": 1, "report": 1, "verify": 1, "restore": 1, "push": 1, "diff": 2, "doctor": 1 << 20}

func addCompletion(root *cobra.Command) {
	for _, c := range root.Commands() {
		if n := artifactArgs[c.Name()]; n > 0 {
			c.ValidArgsFunction = completeArtifacts(n)
		}
	}
}

// completeArtifacts offers files with the suffix of artifacts for the first n arguments. An engine's command follows them, and
// the shell completes that itself.
func completeArtifacts(n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return []string{strings.TrimPrefix(artifacts.Suffix, ".")}, cobra.ShellCompDirectiveFilterFileExt
	}
}

// completeGraphs offers the graph labels of the artifact on the command line.
func completeGraphs(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	art, err := artifacts.Read(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var labels []string
	for i := range art.Spec.Graphs {
		labels = append(labels, art.Spec.Graphs[i].Label)
	}
	return labels, cobra.ShellCompDirectiveNoFileComp
}
