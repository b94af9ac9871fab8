package main

import (
	"errors"

	"github.com/spf13/cobra"

	"medusa/interpose"
	"medusa/restore/supervisor"
)

func newRestoreCmd() *cobra.Command {
	var o supervisor.Options
	cmd := &cobra.Command{
		Use:   "restore FILE -- ENGINE [ARG...]",
		Short: "Start an engine with its graphs restored",
		Long: `Starts the engine with the graphs of FILE restored in place of profile forward, warm-up and capture.

Whatever stands in the way (another GPU, driver, model or checkpoint, a damaged file, too little memory) is reported in
one line, and the engine starts natively. With --strict it ends instead: exit code 3 where FILE does not fit, 5 where it
is damaged. Otherwise the exit code is the engine's own.`,
		Example: "  medusa restore llama.medusa -- reference run --model ./llama",
		RunE: func(cmd *cobra.Command, args []string) error {
			own, argv := splitCommand(cmd, args)
			if len(own) != 1 || len(argv) == 0 {
				return usageError{errors.New("restore needs one artifact and an engine command behind --")}
			}
			library, err := interpose.FindLibrary()
			if err != nil {
				return err
			}
			o.Artifact, o.Argv, o.Library = own[0], argv, library
			o.Stdin, o.Stdout, o.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			code, err := supervisor.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if code != 0 {
				return childExit(code)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "end instead of starting natively")
	cmd.Flags().StringVar(&o.Status, "status", "", "file that receives the start's status as one JSON object")
	return cmd
}
