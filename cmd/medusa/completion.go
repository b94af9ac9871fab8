package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"medusa/artifacts"
	"medusa/artifacts/store"
	"medusa/materialize"
	"medusa/serving/schedule"
)

func addCompletion(root *cobra.Command) {
	for _, c := range root.Commands() {
		if n := artifactArgs[c.Name()]; n > 0 {
			c.ValidArgsFunction = completeArtifacts(n)
		}
		completeFlags(c)
	}
}

// completeArtifacts offers names in the cache, or else files with the suffix of artifacts, for the first n arguments. An engine's command follows them, and
// the shell completes that itself.
func completeArtifacts(n int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveDefault
		}
		if names := cachedNames(begun); len(names) > 0 {
			return names, cobra.ShellCompDirectiveDefault
		}
		return []string{strings.TrimPrefix(artifacts.Suffix, ".")}, cobra.ShellCompDirectiveFilterFileExt
	}
}

// cachedNames are the names and digests in the cache that begin so. Paths are no names.
func cachedNames(begun string) (out []string) {
	cache, err := store.FromEnv()
	if err != nil || strings.HasPrefix(begun, ".") || strings.HasPrefix(begun, "/") {
		return nil
	}
	all, err := cache.List()
	if err != nil {
		return nil
	}
	for _, e := range all {
		for _, name := range append(slices.Clone(e.Names), e.Digest) {
			if begun != "" && strings.HasPrefix(name, begun) || begun == "" && name != e.Digest {
				out = append(out, name)
			}
		}
	}
	return out
}

// flagValues are the values that flags take, by command and flag.
var flagValues = map[string][]string{
	"restore --check": {"none", "canary", "full"}, "restore --addresses": {"exact", "relocate"},
	"materialize --until": materialize.Untils,
	"simulate --policy":   schedule.Names(), "simulate --strategy": {"native", "async", "no-graphs", "kv-only", "restored"},
}

// completeFlags offers values of flags.
func completeFlags(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		values := flagValues[c.Name()+" --"+f.Name]
		if f.Name == "output" && f.DefValue == "table" {
			values = []string{"table", "json"}
		}
		switch {
		case values != nil:
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		case f.Name == "artifact", f.Name == "against":
			_ = c.RegisterFlagCompletionFunc(f.Name, completeArtifacts(1<<20))
		}
	})
	for _, sub := range c.Commands() {
		completeFlags(sub)
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
