package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

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
	var commands []string
	cmd := &cobra.Command{
		Use:                   "identity [--against FILE] [FILE...] [--command LINE] -- ENGINE [ARG...]",
		DisableFlagsInUseLine: true,
		Short:                 "Print the identity that an artifact for an engine command must match",
		Long: `Starts the engine natively, only until it has stated its identity. Prints the factors of engine, model and GPU, the effect of a
difference in each, and the digest of the canonical document. With --against, and for each further FILE, it lists the factors in which
FILE differs, and what to change. It exits with 3 if no FILE can be used. Several worker processes are printed one after another, by
rank. --command is the command line of another engine, for the shell; each engine must be able to use one of the files.`,
		Example: "  medusa identity -- reference run --model ./llama\n  medusa identity --against llama.medusa -- reference run --model ./llama\n" +
			"  medusa identity a.medusa b.medusa --command 'vllm serve A' --command 'vllm serve B'",
		RunE: func(cmd *cobra.Command, args []string) error {
			files, argv := splitCommand(cmd, args)
			if against != "" {
				files = append([]string{against}, files...)
			}
			var engines [][]string
			for _, line := range commands {
				engines = append(engines, []string{"/bin/sh", "-c", "exec " + line})
			}
			if len(argv) > 0 {
				engines = append(engines, argv)
			}
			if len(engines) == 0 {
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
			o := materialize.Options{Library: library}
			paths := make([]string, len(files))
			for i, file := range files {
				path, release, err := supervisor.File(file)
				if err != nil {
					return err
				}
				defer release()
				m, err := artifacts.ReadRankManifest(path, 0)
				if err != nil {
					return err
				}
				if m.Identity.Has(artifacts.KeyModelCheckpoint) {
					o.Contents = contract.ContentsCount
				}
				paths[i] = path
			}
			var mismatch error
			for _, engine := range engines {
				o.Argv = engine
				got, err := materialize.Identify(cmd.Context(), o)
				if err != nil {
					return err
				}
				if len(engines) > 1 {
					if err := heading(cmd.OutOrStdout(), format, strings.TrimPrefix(engine[len(engine)-1], "exec ")); err != nil {
						return err
					}
				}
				if len(files) == 0 {
					err = writeIdentities(cmd.OutOrStdout(), got, format)
				} else {
					err = compareFiles(cmd.OutOrStdout(), paths, got, relaxed, format)
				}
				if errors.Is(err, artifacts.ErrIncompatible) {
					mismatch = cmp.Or(mismatch, err)
				} else if err != nil {
					return err
				}
			}
			return mismatch
		},
	}
	cmd.Flags().StringVar(&against, "against", "", "artifact to compare with: a file, or a name or digest in the cache")
	cmd.Flags().StringArrayVar(&commands, "command", nil, "command line of an engine (repeatable)")
	cmd.Flags().StringVar(&relax, "relax", "", "with --against: factors that may differ, as in restore")
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	return cmd
}

// heading says what the lines below are about. Each JSON document stands by itself.
func heading(w io.Writer, format, about string) error {
	if format == "json" {
		return nil
	}
	_, err := printable.Fprintf(w, "%s:\n", about)
	return err
}

// compareFiles compares an engine with each artifact. It must be able to use one of them.
func compareFiles(w io.Writer, files []string, ranks []artifacts.Identity, relaxed artifacts.Relaxed, format string) error {
	var mismatch error
	fits := false
	for _, file := range files {
		if len(files) > 1 {
			if err := heading(w, format, file); err != nil {
				return err
			}
		}
		err := compareIdentities(w, file, ranks, relaxed, format)
		switch {
		case err == nil:
			fits = true
		case errors.Is(err, artifacts.ErrIncompatible):
			mismatch = cmp.Or(mismatch, err)
		default:
			return err
		}
	}
	// mutant: one of several artifacts fits
	if fits {
		return nil
	}
	return mismatch
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
			Change   string  `json:"change,omitempty"`
		}
		rows := []row{}
		for _, d := range diff {
			r := row{Key: d.Key, Level: d.Level.String(), Change: d.Change()}
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
	side := func(value string, set bool, absent string) string {
		if !set {
			return absent
		}
		return value
	}
	// Each value has a line of its own, because values may be long and differ in the middle.
	for _, d := range diff {
		absent := "(none)"
		if d.Change() != "" {
			absent = "(default)"
		}
		if _, err := printable.Fprintf(w, "%s (%s)\n  artifact  %s\n  engine    %s\n", d.Key, d.Level, side(d.Want, d.WantSet, absent), side(d.Got, d.GotSet, absent)); err != nil {
			return err
		}
		if change := d.Change(); change != "" {
			if _, err := printable.Fprintf(w, "  change    %s\n", change); err != nil {
				return err
			}
		}
	}
	return nil
}
