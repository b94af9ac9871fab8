// Command reference is a Llama inference engine over the CUDA driver API: `generate` answers prompts, `run` executes a
// workload whose tokens tests compare, `logits` prints the model's logits, `serve` answers requests of OpenAI's API.
//
// Results go to standard output, everything else to standard error. Medusa records or restores the process through
// the environment (docs/architecture.md).
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"medusa/restore"
)

func main() {
	// The driver's current context belongs to this thread.
	runtime.LockOSThread()
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// usageError is an error in the way the command was called.
type usageError struct{ error }

func execute(args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "reference",
		Short:         "A Llama engine over the CUDA driver API",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newGenerate(), newRun(), newLogits(), newServe())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	err := root.Execute()
	if err == nil {
		return 0
	}
	var exit *restore.Exit
	if errors.As(err, &exit) {
		return exit.Code // the session has said why
	}
	fmt.Fprintf(stderr, "reference: %v\n", err)
	if errors.As(err, &usageError{}) {
		return 2
	}
	return 1
}
