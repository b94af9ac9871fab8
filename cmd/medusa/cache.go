package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/artifacts/oci"
	"medusa/artifacts/store"
	"medusa/artifacts/trust"
	"medusa/inspect"
	"medusa/internal/contract"
	"medusa/internal/printable"
)

func newCacheCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Show, shrink and check the local cache of artifacts",
		Long: `The cache is the directory $` + contract.EnvCache + `, or else medusa below the user's cache directory. It holds at most $` + contract.EnvCacheLimit + `
bytes (suffixes K, M, G, T; default 20G). The least recently used artifacts are removed first. Artifacts that running engines use stay.`,
		Args: known,
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("cache needs ls, add, rm, prune or verify")}
		},
	}
	cmd.AddCommand(newCacheLsCmd(), newCacheAddCmd(), newCacheRmCmd(), newCachePruneCmd(), newCacheVerifyCmd())
	return cmd
}

func newCacheLsCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the artifacts, the most recently used first",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "table" && format != "json" {
				return usageError{fmt.Errorf("unknown output %q: table or json", format)}
			}
			s, err := store.FromEnv()
			if err != nil {
				return err
			}
			all, err := s.List()
			if err != nil {
				return err
			}
			if format == "json" {
				return printable.JSON(cmd.OutOrStdout(), append([]store.Entry{}, all...))
			}
			t := printable.NewTable(cmd.OutOrStdout())
			t.Row("DIGEST\tSIZE\tLAST USED\tGPU\tNAMES")
			for _, e := range all {
				t.Row("%.19s\t%s\t%s\t%s\t%s", e.Digest, inspect.Bytes(uint64(e.Size)), e.Used.UTC().Format(time.RFC3339), gpuOf(e.Path), strings.Join(e.Names, " "))
			}
			return t.Flush()
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	return cmd
}

// gpuOf names the GPU that an artifact is for. It gives "?" if the artifact cannot be read; cache verify then says why.
func gpuOf(path string) string {
	m, err := artifacts.ReadManifest(path)
	if err != nil {
		return "?"
	}
	gpu, _ := m.Identity.Get(artifacts.KeyGPUName)
	return gpu
}

func newCacheAddCmd() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "add FILE",
		Short: "Put an artifact file into the cache, together with FILE.proof if that exists",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := store.FromEnv()
			if err != nil {
				return err
			}
			proofs, err := trust.Beside(args[0])
			if err != nil {
				return err
			}
			var origin func(digest string) error
			if len(proofs) > 0 {
				origin = func(digest string) error { return oci.Remember(s, digest, proofs) }
			}
			pin, err := s.AddFile(cmd.Context(), args[0], name, origin)
			if err != nil {
				return err
			}
			defer pin.Close()
			_, err = fmt.Fprintln(cmd.OutOrStdout(), pin.Digest)
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name under which to find it")
	return cmd
}

func newCacheRmCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME|DIGEST...",
		Short: "Remove artifacts that no engine uses",
		Args:  usageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return cachedNames(begun), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := store.FromEnv()
			if err != nil {
				return err
			}
			for _, ref := range args {
				e, err := s.Remove(ref)
				if err != nil {
					return err
				}
				if _, err := printable.Fprintf(cmd.OutOrStdout(), "%s\n", e.Digest); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func newCachePruneCmd() *cobra.Command {
	var limit string
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove unfinished downloads, and the least recently used artifacts above a limit",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := store.FromEnv()
			if err != nil {
				return err
			}
			bytes := s.Limit()
			if limit != "" {
				if bytes, err = store.ParseSize(limit); err != nil {
					return usageError{fmt.Errorf("--limit: %w", err)}
				}
			}
			f, err := s.Prune(bytes)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "removed %d artifacts and %d unfinished downloads, %d bytes (%d more are in use)\n", f.Artifacts, f.Partial, f.Bytes, f.InUse)
			return err
		},
	}
	cmd.Flags().StringVar(&limit, "limit", "", "most bytes to keep, such as 5G or 0 (default: the cache's limit)")
	return cmd
}

func newCacheVerifyCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check every artifact, and remove damaged ones",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := store.FromEnv()
			if err != nil {
				return err
			}
			found, err := s.Verify()
			if err != nil {
				return err
			}
			damaged := 0
			for _, f := range found {
				if f.Err != nil {
					damaged++
					printable.Fprintf(cmd.OutOrStdout(), "%s: removed: %v\n", f.Digest, f.Err)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d artifacts are intact\n", len(found)-damaged)
			if damaged > 0 {
				return fmt.Errorf("verify cache: %d artifacts were damaged: %w", damaged, artifacts.ErrCorrupt)
			}
			return nil
		},
	}
}
