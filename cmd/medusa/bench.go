package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/internal/printable"
	"medusa/internal/starts"
	"medusa/interpose"
)

func newBenchCmd() *cobra.Command {
	o := starts.Options{Log: io.Discard}
	var modes []string
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:   "bench ARTIFACT -- ENGINE [ARG...]",
		Short: "Measure native and restored starts of an engine against each other",
		Long: `Starts the engine natively and restored, in turns, and prints the medians of its phases up to ready and the ratio of the
native start to each other. The engine's command has to end by itself, or be a server that --health knows to be ready.

--mode adds a way to start: a name and what is added to the engine's command. {kv} in it stands for the bytes of the KV
cache that the artifact says.`,
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
			if verbose {
				o.Log = cmd.ErrOrStderr()
			}
			report, err := starts.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return printable.JSON(cmd.OutOrStdout(), report)
			}
			return report.WriteTable(cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVarP(&o.Rounds, "rounds", "n", 7, "starts of each mode, after one that does not count")
	cmd.Flags().StringVar(&o.Health, "health", "", "the engine is a server: wait until this address answers 200, then stop it")
	cmd.Flags().StringArrayVar(&modes, "mode", nil, "another way to start (NAME=ARG ARG..., repeatable)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show what the engine prints")
	return cmd
}

// readModes reads NAME=ARG ARG... lists.
func readModes(list []string, artifact string) ([]starts.Mode, error) {
	var modes []starts.Mode
	for _, text := range list {
		name, args, found := strings.Cut(text, "=")
		if !found || name == "" || name == starts.Native || name == starts.Restored {
			return nil, usageError{fmt.Errorf("--mode %s: want NAME=ARG ARG..., NAME neither native nor restored", text)}
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
