package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/internal/atomicfile"
	"medusa/internal/printable"
	"medusa/interpose"
	"medusa/restore/starts"
)

func newBenchCmd() *cobra.Command {
	o := starts.Options{Log: io.Discard}
	var modes []string
	var page string
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:                   "bench [flags] ARTIFACT -- ENGINE [ARG...]",
		DisableFlagsInUseLine: true,
		Short:                 "Compare the times of native and restored starts of an engine",
		Long: `Starts the engine natively and restored, in turns. Prints the median time of each phase up to ready, and the ratio of the
native start to each other mode. The engine's command must end by itself, or be a server: then name its --health address. With
--request and --body the start ends with the answer to a first request.

--report writes a page with the table, and a drawing of one more start of each mode: phases, what each Python process imports, and
when it waits. A pool that runs already has imported before, so only --pool with a file shows its imports.

--mode adds a way to start: a name, and arguments to add to the engine's command. {kv} in them is replaced by the artifact's
bytes for the KV cache.`,
		Example: `  medusa bench llama.medusa --mode "kv-only=--start kv-only --kv-cache-bytes {kv}" \
      --mode "no-graphs=--start no-graphs" -- reference run --model ./llama --batches 1
  medusa bench qwen.medusa --health http://localhost:8000/health --mode "kv-only=--kv-cache-memory-bytes {kv}" \
      --mode no-graphs=--enforce-eager -- vllm serve ./qwen`,
		RunE: func(cmd *cobra.Command, args []string) error {
			own, argv := splitCommand(cmd, args)
			if len(own) != 1 || len(argv) == 0 || o.Rounds < 1 {
				return usageError{errors.New("bench needs an artifact, at least one round, and an engine command behind --")}
			}
			o.Artifact, o.Argv = own[0], argv
			var err error
			if o.Modes, err = readModes(modes, o.Artifact); err != nil {
				return err
			}
			if o.Library, err = interpose.FindLibrary(); err != nil {
				return err
			}
			if o.Health == "" && o.Request != "" {
				return usageError{errors.New("--request needs --health")}
			}
			o.Record = page != ""
			if verbose {
				o.Log = cmd.ErrOrStderr()
			}
			report, err := starts.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if page != "" {
				var text bytes.Buffer
				if err := report.WriteReport(&text); err != nil {
					return err
				}
				if err := atomicfile.Write(page, 0o644, &text); err != nil {
					return fmt.Errorf("write report: %w", err)
				}
			}
			if asJSON {
				return printable.JSON(cmd.OutOrStdout(), report)
			}
			return report.WriteTable(cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVarP(&o.Rounds, "rounds", "n", 7, "measured starts of each mode; one more before them is not measured")
	cmd.Flags().StringVar(&o.Health, "health", "", "for an engine that is a server: wait until this address answers 200, then stop it")
	cmd.Flags().StringVar(&o.Request, "request", "", "the address of a first request once the server is healthy (POST)")
	cmd.Flags().StringVar(&o.Body, "body", "{}", "JSON of this request")
	cmd.Flags().StringVar(&o.Pool, "pool", "", "also restore with a pool (its socket, or its file for a pool of the start's own)")
	cmd.Flags().StringVar(&page, "report", "", "file for a page with the table and a drawing of the starts")
	cmd.Flags().StringArrayVar(&modes, "mode", nil, "another way to start (NAME=ARG ARG..., repeatable)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show the engine's output")
	return cmd
}

// readModes reads a list of NAME=ARG ARG... texts.
func readModes(list []string, artifact string) ([]starts.Mode, error) {
	var modes []starts.Mode
	for _, text := range list {
		name, args, found := strings.Cut(text, "=")
		if !found || name == "" || slices.Contains([]string{starts.Native, starts.Restored, starts.Pooled}, name) {
			return nil, usageError{fmt.Errorf("--mode %s: want NAME=ARG ARG... (native, restored and pool are taken)", text)}
		}
		modes = append(modes, starts.Mode{Name: name, Args: strings.Fields(args)})
	}
	m, err := artifacts.ReadManifest(artifact)
	if err != nil {
		return nil, err
	}
	for _, mode := range modes {
		for i, arg := range mode.Args {
			mode.Args[i] = strings.ReplaceAll(arg, "{kv}", strconv.FormatUint(m.KV.KVBytes, 10))
		}
	}
	return modes, nil
}
