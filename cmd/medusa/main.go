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
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
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
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		select {
		case s := <-signals:
			end(interrupted(s.(syscall.Signal)))
		case <-ctx.Done():
		}
	}()
	root := newRootCmd()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var child childExit
	var usage usageError
	var by interrupted
	switch {
	case err == nil, errors.As(err, &child), errors.Is(err, errDiffer):
	case errors.As(err, &usage):
		printable.Fprintf(stderr, "medusa: %v (see %s --help)\n", err, cmd.CommandPath())
	default:
		printable.Fprintf(stderr, "medusa: %v\n", err)
		if errors.As(context.Cause(ctx), &by) {
			err = by
		}
	}
	return exitCode(err)
}

// interrupted is the signal that ended a command before its work was done.
type interrupted syscall.Signal

func (i interrupted) Error() string { return syscall.Signal(i).String() }

func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:               "medusa",
		Short:             "Materialize an LLM engine's CUDA graphs once, restore them at every start",
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Args:              known,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	info, _ := debug.ReadBuildInfo()
	root.Version = versionOf(info).Medusa
	root.SetVersionTemplate("medusa {{.Version}}\n")
	cobra.EnableCommandSorting = false // help lists them in the order in which people use them
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{err} })
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Make artifacts and start from them:", []*cobra.Command{newMaterializeCmd(), newRestoreCmd(), newPoolCmd(), newServeCmd(), newAgentCmd(), newPsCmd(), newVerifyCmd(), newIdentityCmd()}},
		{"Ship them:", []*cobra.Command{newPushCmd(), newPullCmd(), newBakeCmd(), newCacheCmd(), newKeygenCmd(), newInstallCmd()}},
		{"Look at them:", []*cobra.Command{newInspectCmd(), newDiffCmd(), newReportCmd(), newDoctorCmd()}},
		{"Research:", []*cobra.Command{newExplainCmd(), newBenchCmd(), newSimulateCmd(), newPlanCmd()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(newVersionCmd(), newHoldCmd())
	takeCached(root)
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
	exitNoCommand    = 127 // as in a shell; so is 128 plus the number of a signal
)

// usageError is a wrong command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// childExit is the engine's own exit code.
type childExit int

func (c childExit) Error() string { return fmt.Sprintf("engine ended with exit code %d", int(c)) }

func exitCode(err error) int {
	var usage usageError
	var child childExit
	var badTrace *trace.Error
	var by interrupted
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
	case errors.As(err, &by):
		return 128 + int(by)
	case errors.As(err, new(*exec.Error)):
		return exitNoCommand
	}
	return exitError
}

// usageArgs turns the error of a cobra argument check into a usageError that names what the command takes.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		_, takes, _ := strings.Cut(cmd.Use, " ")
		if takes == "" {
			takes = "no argument"
		}
		return usageError{fmt.Errorf("%s takes %s, not %q", cmd.Name(), takes, args)}
	}
}

// known refuses what is no command.
func known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	var like string
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 && len(args[0]) > 3 {
		like = " (" + strings.Join(similar, " or ") + "?)"
	}
	return usageError{fmt.Errorf("%s is no command of %s%s", args[0], cmd.CommandPath(), like)}
}

// splitCommand separates medusa's own arguments before "--" from the engine's command after it.
func splitCommand(cmd *cobra.Command, args []string) (own, engine []string) {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return args[:n], args[n:]
	}
	return args, nil
}
