package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"medusa/internal/printable"
	"medusa/interpose"
	"medusa/materialize"
)

func newMaterializeCmd() *cobra.Command {
	var output, traces, until, resume string
	var verbose, embed bool
	var dirs []string
	cmd := &cobra.Command{
		Use:   "materialize -o FILE -- ENGINE [ARG...]",
		Short: "Record an engine's start, compile its graphs and verify the artifact",
		Long: `Starts the engine several times: once to profile the KV cache, twice to record its graphs with memory in different
places, and twice to compare restored graphs with natively captured ones. FILE appears only when they agree.

What JIT compilers (torch.compile, Triton, FlashInfer) make in these starts travels along, unless a variable names their cache.
So do directories given with --dir, as the runs left them: restore puts them where they were, or elsewhere where it is told to.`,
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
			library, err := interpose.FindLibrary()
			if err != nil {
				return err
			}
			o := materialize.Options{Output: output, Argv: argv, Library: library, Traces: cmp.Or(traces, resume), Until: until, Resume: resume != "", EmbedImages: embed, Now: time.Now().UTC()}
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
			var notes []string // shown once no bar is in their way
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
	cmd.Flags().StringVar(&traces, "keep-traces", "", "directory for the traces of the recorded runs")
	cmd.Flags().StringVar(&until, "until", "", "end after a `step`, with kept traces and no artifact: "+strings.Join(materialize.Untils, ", "))
	cmd.Flags().StringVar(&resume, "resume", "", "directory of kept traces: what an earlier series of the same command has recorded is not recorded again")
	cmd.Flags().BoolVar(&embed, "embed-images", false, "take kernels along even where a shared object of the engine holds them")
	cmd.Flags().StringArrayVar(&dirs, "dir", nil, "directory that travels along (NAME=PATH, repeatable)")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show what the engine prints")
	return cmd
}

// progress shows steps as a bar where standard error is a terminal, and as lines elsewhere; and how long each took.
func progress(w io.Writer, bar bool) (step func(i, n int, what string), done func()) {
	var began time.Time
	var last string
	took := func() {
		if last != "" {
			fmt.Fprintf(w, "%s: %.1f s\n", last, time.Since(began).Seconds())
		}
	}
	f, ok := w.(*os.File)
	var b *progressbar.ProgressBar
	if bar && ok && term.IsTerminal(int(f.Fd())) {
		b = progressbar.NewOptions(1, progressbar.OptionSetWriter(w), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(24), progressbar.OptionShowCount())
	}
	step = func(i, n int, what string) {
		if b != nil {
			b.Clear()
		}
		took()
		began, last = time.Now(), fmt.Sprintf("[%d/%d] %s", i+1, n, what)
		if b == nil {
			fmt.Fprintln(w, last)
			return
		}
		b.ChangeMax(n)
		b.Describe(what)
		b.Set(i)
	}
	return step, func() {
		if b != nil {
			b.Finish()
		}
		took()
	}
}
