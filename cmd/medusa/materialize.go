package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"medusa/interpose"
	"medusa/materialize"
)

func newMaterializeCmd() *cobra.Command {
	var output, traces string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "materialize -o FILE -- ENGINE [ARG...]",
		Short: "Record an engine's start, compile its graphs and verify the artifact",
		Long: `Starts the engine several times: once to profile the KV cache, twice to record its graphs with memory in different
places, and twice to compare restored graphs with natively captured ones. FILE appears only when they agree.`,
		Example: "  medusa materialize -o llama.medusa -- reference run --model ./llama",
		RunE: func(cmd *cobra.Command, args []string) error {
			own, argv := splitCommand(cmd, args)
			if len(own) > 0 || len(argv) == 0 || output == "" {
				return usageError{errors.New("materialize needs -o FILE and an engine command behind --")}
			}
			library, err := interpose.FindLibrary()
			if err != nil {
				return err
			}
			o := materialize.Options{Output: output, Argv: argv, Library: library, Traces: traces, Now: time.Now().UTC()}
			if verbose {
				o.Log = cmd.ErrOrStderr()
			}
			var done func()
			o.Step, done = progress(cmd.ErrOrStderr(), !verbose)
			art, err := materialize.Run(cmd.Context(), o)
			done()
			if err != nil {
				return err
			}
			return writeSummary(cmd.OutOrStdout(), output, art)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "artifact to write")
	cmd.Flags().StringVar(&traces, "keep-traces", "", "directory for the traces of the recorded runs")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show what the engine prints")
	return cmd
}

// progress shows steps as a bar where standard error is a terminal, and as lines elsewhere.
func progress(w io.Writer, bar bool) (step func(i, n int, what string), done func()) {
	f, ok := w.(*os.File)
	if !bar || !ok || !term.IsTerminal(int(f.Fd())) {
		return func(i, n int, what string) { fmt.Fprintf(w, "[%d/%d] %s\n", i+1, n, what) }, func() {}
	}
	var b *progressbar.ProgressBar
	step = func(i, n int, what string) {
		if b == nil {
			b = progressbar.NewOptions(n, progressbar.OptionSetWriter(w), progressbar.OptionClearOnFinish(),
				progressbar.OptionSetWidth(24), progressbar.OptionShowCount())
		}
		b.Describe(what)
		b.Set(i)
	}
	return step, func() {
		if b != nil {
			b.Finish()
		}
	}
}
