// Command medusa materializes the CUDA graphs and the KV-cache profile of an LLM engine into an artifact, and starts engines with
// both restored.
//
// In: command lines. The files hold flags, progress and printing only, no logic. Out: results on standard output, everything else
// on standard error. Exit codes: see exitCode.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/artifacts/bundled"
	"medusa/artifacts/store"
	"medusa/artifacts/trust"
	"medusa/internal/printable"
	"medusa/interpose/trace"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main for tests: it returns the exit code instead of ending the process.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRootCmd()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var child childExit
	if err != nil && !errors.As(err, &child) && !errors.Is(err, errDiffer) {
		printable.Fprintf(stderr, "medusa: %v\n", err)
	}
	return exitCode(err)
}

func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:               "medusa",
		Short:             "Materialize an LLM engine's CUDA graphs once, restore them at every start",
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
	}
	cobra.EnableCommandSorting = false // help lists them in the order in which people use them
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Make artifacts and start from them:", []*cobra.Command{newMaterializeCmd(), newRestoreCmd(), newPoolCmd(), newServeCmd(), newAgentCmd(), newPsCmd(), newVerifyCmd(), newIdentityCmd()}},
		{"Ship them:", []*cobra.Command{newPushCmd(), newPullCmd(), newBakeCmd(), newCacheCmd(), newKeygenCmd(), newInstallCmd()}},
		{"Look at them:", []*cobra.Command{newInspectCmd(), newDiffCmd(), newReportCmd(), newExplainCmd(), newDoctorCmd()}},
		{"Measure and plan:", []*cobra.Command{newBenchCmd(), newSimulateCmd(), newPlanCmd()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(newVersionCmd(), newHoldCmd())
	addCompletion(root)
	return root
}

// The exit codes of medusa. restore passes on the engine's own code if the engine ran.
const (
	exitOK           = 0
	exitError        = 1
	exitUsage        = 2
	exitIncompatible = 3
	exitCorrupt      = 5
)

// usageError is a wrong command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() + " (see medusa help)" }
func (e usageError) Unwrap() error { return e.err }

// childExit is the engine's own exit code.
type childExit int

func (c childExit) Error() string { return fmt.Sprintf("engine ended with exit code %d", int(c)) }

func exitCode(err error) int {
	var usage usageError
	var child childExit
	var badTrace *trace.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &child):
		return int(child)
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, artifacts.ErrIncompatible), errors.Is(err, artifacts.ErrVersion), errors.Is(err, trust.ErrUntrusted):
		return exitIncompatible
	case errors.Is(err, artifacts.ErrCorrupt), errors.Is(err, bundled.ErrArchive), errors.Is(err, store.ErrDigest), errors.As(err, &badTrace):
		return exitCorrupt
	case errors.As(err, new(trouble)):
		return exitUsage
	}
	return exitError
}

// usageArgs turns the error of a cobra argument check into a usageError.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// splitCommand separates medusa's own arguments before "--" from the engine's command after it.
func splitCommand(cmd *cobra.Command, args []string) (own, engine []string) {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return args[:n], args[n:]
	}
	return args, nil
}
