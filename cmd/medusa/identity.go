package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/internal/printable"
	"medusa/interpose"
	"medusa/materialize"
	"medusa/restore/supervisor"
)

func newIdentityCmd() *cobra.Command {
	var against, format, relax string
	cmd := &cobra.Command{
		Use:                   "identity [--against ARTIFACT] -- ENGINE [ARG...]",
		DisableFlagsInUseLine: true,
		Short:                 "Print the identity that an artifact for an engine command must match",
		Long: `Starts the engine natively, only until it has stated its identity. Prints the factors of engine, model and GPU, the effect of a
difference in each, and the digest of the canonical document. With --against it lists the factors in which FILE differs, and
exits with 3 if FILE cannot be used. Several worker processes are printed one after another, by rank.`,
		Example: "  medusa identity -- reference run --model ./llama\n  medusa identity --against llama.medusa -- reference run --model ./llama",
		RunE: func(cmd *cobra.Command, args []string) error {
			own, argv := splitCommand(cmd, args)
			if len(own) > 0 || len(argv) == 0 {
				return usageError{errors.New("identity needs an engine command behind --")}
			}
			if format != "table" && format != "json" {
				return usageError{fmt.Errorf("unknown output %q: table or json", format)}
			}
			relaxed, err := artifacts.ParseRelaxed(relax)
			if err != nil {
				return usageError{err}
			}
			library, err := interpose.FindLibrary()
			if err != nil {
				return err
			}
			o := materialize.Options{Argv: argv, Library: library}
			if against != "" {
				path, release, err := supervisor.File(against)
				if err != nil {
					return err
				}
				defer release()
				against = path
				m, err := artifacts.ReadRankManifest(against, 0)
				if err != nil {
					return err
				}
				if m.Identity.Has(artifacts.KeyModelCheckpoint) {
					o.Contents = contract.ContentsCount
				}
			}
			got, err := materialize.Identify(cmd.Context(), o)
			if err != nil {
				return err
			}
			if against == "" {
				return writeIdentities(cmd.OutOrStdout(), got, format)
			}
			return compareIdentities(cmd.OutOrStdout(), against, got, relaxed, format)
		},
	}
	cmd.Flags().StringVar(&against, "against", "", "artifact to compare with: a file, or a name or digest in the cache")
	cmd.Flags().StringVar(&relax, "relax", "", "with --against: factors that may differ, as in restore")
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	return cmd
}

// unusable is a mismatch. Its factors are on standard output already.
type unusable struct {
	file string
	error
}

func (u unusable) Error() string {
	return fmt.Sprintf("compare identity: this engine cannot use %s here", u.file)
}

func (u unusable) Unwrap() error { return u.error }

// writeIdentities writes the identity of each worker process, by rank.
func writeIdentities(w io.Writer, ranks []artifacts.Identity, format string) error {
	for _, id := range ranks {
		if err := writeIdentity(w, id, format); err != nil {
			return err
		}
	}
	return nil
}

// compareIdentities compares each worker process with its rank's part of the artifact. It returns the first mismatch as the
// error.
func compareIdentities(w io.Writer, against string, ranks []artifacts.Identity, relaxed artifacts.Relaxed, format string) error {
	var mismatch error
	for rank, got := range ranks {
		want, err := artifacts.ReadRankManifest(against, rank)
		if err != nil {
			return err
		}
		if err := writeDifferences(w, artifacts.Diff(want.Identity, got), format); err != nil {
			return err
		}
		if m := artifacts.Compare(want.Identity, got, relaxed); m != nil && mismatch == nil {
			mismatch = unusable{against, m}
		}
	}
	return mismatch
}

func writeIdentity(w io.Writer, id artifacts.Identity, format string) error {
	if format == "json" {
		return printable.JSON(w, struct {
			Digest   string          `json:"digest"`
			Document json.RawMessage `json:"document"`
		}{id.Digest(), id.Document()})
	}
	t := printable.NewTable(w)
	t.Row("FACTOR\tA DIFFERENCE IS\tVALUE")
	for _, f := range id {
		t.Row("%s\t%s\t%s", f.Key, artifacts.LevelOf(f.Key), f.Value)
	}
	t.Row("digest\t\t%s", id.Digest())
	return t.Flush()
}

func writeDifferences(w io.Writer, diff []artifacts.Difference, format string) error {
	if format == "json" {
		type row struct {
			Key      string  `json:"key"`
			Artifact *string `json:"artifact"` // null: the side has no such factor
			Engine   *string `json:"engine"`
			Level    string  `json:"level"`
		}
		rows := []row{}
		for _, d := range diff {
			r := row{Key: d.Key, Level: d.Level.String()}
			if d.WantSet {
				r.Artifact = &d.Want
			}
			if d.GotSet {
				r.Engine = &d.Got
			}
			rows = append(rows, r)
		}
		return printable.JSON(w, rows)
	}
	if len(diff) == 0 {
		_, err := fmt.Fprintln(w, "no factor differs")
		return err
	}
	side := func(value string, set bool) string {
		if !set {
			return "(none)"
		}
		return value
	}
	// Each value has a line of its own, because engine arguments are long and often differ in the middle.
	for _, d := range diff {
		if _, err := printable.Fprintf(w, "%s (%s)\n  artifact  %s\n  engine    %s\n", d.Key, d.Level, side(d.Want, d.WantSet), side(d.Got, d.GotSet)); err != nil {
			return err
		}
	}
	return nil
}
