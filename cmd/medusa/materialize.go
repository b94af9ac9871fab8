package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"medusa/artifacts/store"
	"medusa/internal/contract"
	"medusa/internal/garbage"
	"medusa/internal/printable"
	"medusa/interpose"
	"medusa/materialize"
)

func newMaterializeCmd() *cobra.Command {
	var output, traces, until, resume string
	var verbose, embed bool
	var alone int
	var communicator string
	var dirs []string
	cmd := &cobra.Command{
		Use:                   "materialize [flags] -o FILE -- ENGINE [ARG...]",
		DisableFlagsInUseLine: true,
		Short:                 "Record an engine's start, compile its graphs and verify the artifact",
		Long: `Starts the engine five times: once to profile the KV cache, twice to record its graphs with memory at different
addresses, and twice to compare restored graphs with natively captured ones. FILE appears only if they agree. If the engine fails,
all that it printed in that start is in FILE.log.

The output of JIT compilers (torch.compile, Triton, FlashInfer) in these starts is bundled, unless a variable names their cache.
Directories given with --dir are bundled as the runs left them. restore unpacks them to their old place, or to the place of its --dir.

With --ranks-alone N, an engine of N GPUs is recorded on a machine with one GPU: each start is made N times, once for each rank, with no other
rank running. ENGINE then is the command that starts one rank (` + contract.EnvRank + ` says which), and the engine has to support it (docs/ranks.md). Graphs
with collective calls are verified, but a restored start cannot check their results.`,
		Example: `  medusa materialize -o llama.medusa -- reference run --model ./llama
  medusa materialize -o llama.medusa -- vllm serve ./llama`,
		RunE: func(cmd *cobra.Command, args []string) error {
			own, argv := splitCommand(cmd, args)
			if len(own) > 0 || len(argv) == 0 || (output == "" && until == "") {
				return usageError{errors.New("materialize needs -o FILE and an engine command behind --")}
			}
			if resume != "" && traces != "" && resume != traces {
				return usageError{errors.New("--resume DIR keeps its traces where they are: leave --keep-traces out")}
			}
			if until != "" && (!slices.Contains(materialize.Untils, until) || traces == "" && resume == "") {
				return usageError{fmt.Errorf("--until takes one of %s, with --keep-traces or --resume", strings.Join(materialize.Untils, ", "))}
			}
			if cmd.Flags().Changed("ranks-alone") && alone < 2 {
				return usageError{errors.New("--ranks-alone takes the number of ranks, at least 2")}
			}
			if alone == 0 && cmd.Flags().Changed("communicator-memory") {
				return usageError{errors.New("--communicator-memory is for --ranks-alone: ranks that run together have their communicator")}
			}
			unseen, err := store.ParseSize(communicator)
			if err != nil {
				return usageError{fmt.Errorf("--communicator-memory: %w", err)}
			}
			garbage.Seldom()
			library, err := interpose.FindLibrary()
			if err != nil {
				return err
			}
			o := materialize.Options{Output: output, Argv: argv, Library: library, Traces: cmp.Or(traces, resume), Until: until, Resume: resume != "", EmbedImages: embed,
				Alone: alone, Communicator: uint64(unseen), Now: time.Now().UTC()}
			places, err := readDirs(dirs)
			if err != nil {
				return usageError{err}
			}
			for _, name := range slices.Sorted(maps.Keys(places)) {
				o.Dirs = append(o.Dirs, materialize.Dir{Name: name, Path: places[name]})
			}
			if verbose {
				o.Log = cmd.ErrOrStderr()
			}
			var done func()
			o.Step, done = progress(cmd.ErrOrStderr(), !verbose)
			var notes []string // printed after the progress bar is gone
			o.Note = func(text string) { notes = append(notes, text) }
			art, err := materialize.Run(cmd.Context(), o)
			done()
			for _, note := range notes {
				printable.Fprintf(cmd.ErrOrStderr(), "medusa: %s\n", note)
			}
			if err != nil {
				return err
			}
			if art == nil {
				_, err := printable.Fprintf(cmd.OutOrStdout(), "stopped after %s: go on with --resume %s\n", until, o.Traces)
				return err
			}
			return writeSummary(cmd.OutOrStdout(), output, art)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "artifact to write")
	cmd.Flags().StringVar(&traces, "keep-traces", "", "directory of this user's alone for the traces and the engine's output of each run")
	cmd.Flags().StringVar(&until, "until", "", "end after a `step`, with kept traces and no artifact: "+strings.Join(materialize.Untils, ", "))
	cmd.Flags().StringVar(&resume, "resume", "", "directory of kept traces: runs that an earlier series of the same command finished are not repeated")
	cmd.Flags().BoolVar(&embed, "embed-images", false, "store the images of kernels even if a shared object of the engine contains them")
	cmd.Flags().StringArrayVar(&dirs, "dir", nil, "directory to bundle (NAME=PATH, repeatable)")
	cmd.Flags().IntVar(&alone, "ranks-alone", 0, "number of ranks, which are run one after another on one GPU")
	cmd.Flags().StringVar(&communicator, "communicator-memory", "2G", "with --ranks-alone: device memory that a rank's communicator will take")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show the engine's output")
	return cmd
}
