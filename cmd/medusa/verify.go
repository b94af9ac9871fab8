package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/artifacts/probe"
	"medusa/artifacts/store"
	"medusa/internal/contract"
	"medusa/internal/printable"
	"medusa/interpose"
	"medusa/materialize"
)

func newVerifyCmd() *cobra.Command {
	var verbose bool
	var key string
	cmd := &cobra.Command{
		Use:                   "verify [flags] ARTIFACT [-- ENGINE [ARG...]]",
		DisableFlagsInUseLine: true,
		Short:                 "Check an artifact; given an engine, compare restored with native graphs again",
		Long: `Reads every section of FILE and checks every reference in it. With --verify KEY, or a policy (` + contract.EnvTrust + `) that requires it, the
signature in FILE.proof is checked first; medusa pull -o FILE writes it. With an engine command it also repeats the verification
of materialize: the engine starts natively and restored, both replay every graph on the same data, and all memory written is
compared bit by bit.

If this machine has another driver of the same major version, such a check lets it pass: the cache remembers the artifact, the
name of the GPU and the driver, and medusa restore accepts that driver on this machine from then on.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			own, argv := splitCommand(cmd, args)
			if len(own) != 1 {
				return usageError{errors.New("verify needs one artifact")}
			}
			if err := trusted(cmd, own[0], key); err != nil {
				return err
			}
			art, err := artifacts.Check(own[0])
			if err != nil {
				return err
			}
			if len(argv) == 0 {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: intact (not replayed: no engine given)\n", own[0])
				return err
			}
			library, err := interpose.FindLibrary()
			if err != nil {
				return err
			}
			other := otherDriver(cmd.Context(), art.Identity)
			o := materialize.Options{Argv: argv, Library: library}
			if other != nil {
				o.Relax = artifacts.Relaxed{artifacts.KeyDriverVersion + "=" + other.Version}
			}
			if verbose {
				o.Log = cmd.ErrOrStderr()
			}
			var done func()
			o.Step, done = progress(cmd.ErrOrStderr(), !verbose)
			ranks, err := materialize.Verify(cmd.Context(), o, own[0], art)
			done()
			if err != nil {
				return err
			}
			for i, record := range ranks {
				name := own[0]
				if len(ranks) > 1 {
					name = fmt.Sprintf("%s rank %d", name, i)
				}
				if _, err = printable.Fprintf(cmd.OutOrStdout(), "%s: %d graphs verified on %s\n", name, len(record.Graphs), record.Device); err != nil {
					return err
				}
			}
			return remember(cmd.OutOrStdout(), own[0], other)
		},
	}
	verifyFlag(cmd, &key)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show the engine's output")
	return cmd
}

// otherDriver returns this machine's driver if it differs from the artifact's and is of the same major version. With another major
// version, the engine's process reports the difference.
func otherDriver(ctx context.Context, made artifacts.Identity) *store.Driver {
	found, err := probe.Devices(ctx)
	if err != nil {
		return nil // the engine's process reports the reason
	}
	version, _ := made.Get(artifacts.KeyDriverVersion)
	gpu, _ := made.Get(artifacts.KeyGPUName)
	here := strconv.Itoa(found.Driver)
	if here == version || !artifacts.SameMajor(here, version) {
		return nil
	}
	return &store.Driver{GPU: gpu, Version: here}
}

// remember keeps a driver that has passed. The runs check-native and check-restored have compared the GPU's name with the artifact's.
func remember(w io.Writer, path string, d *store.Driver) error {
	if d == nil {
		return nil
	}
	cache, err := store.FromEnv()
	if err != nil {
		return err
	}
	if err := cache.AddDriver(path, *d); err != nil {
		return err
	}
	_, err = printable.Fprintf(w, "%s: driver %s passes on this machine from now on\n", path, d.Version)
	return err
}
