package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"medusa/inspect/page"
)

func newReportCmd() *cobra.Command {
	var output string
	var rank int
	cmd := &cobra.Command{
		Use:   "report ARTIFACT -o PAGE",
		Short: "Write one HTML page about an artifact",
		Long: `Writes one self-contained page: the stages of native and restored starts, memory by phase, kernels by count, graph sizes, the
sections of the file and its identity. The page needs no network and runs no script.`,
		Example: "  medusa report llama.medusa -o report.html",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return usageError{errors.New("report needs -o PAGE (- is standard output)")}
			}
			art, sections, err := readSections(args[0], rank)
			if err != nil {
				return err
			}
			return toFile(cmd.OutOrStdout(), output, func(w io.Writer) error { return page.Write(w, args[0], art, sections) })
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "page to write")
	rankFlag(cmd, &rank)
	return cmd
}
