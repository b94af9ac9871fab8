package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"medusa/artifacts"
	"medusa/artifacts/bundled"
	"medusa/artifacts/store"
	"medusa/artifacts/trust"
	"medusa/interpose/trace"
)

var update = flag.Bool("update", false, "rewrite testdata/commands.txt")

// Scripts call commands, so existing commands and flags keep their names and kinds (docs/promises.md).
func TestCommandsAndFlags(t *testing.T) {
	var got strings.Builder
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.Hidden {
			fmt.Fprintln(&got, c.CommandPath())
			c.LocalFlags().VisitAll(func(f *pflag.Flag) {
				short := ""
				if f.Shorthand != "" {
					short = " -" + f.Shorthand
				}
				fmt.Fprintf(&got, "  --%s%s %s %q\n", f.Name, short, f.Value.Type(), f.DefValue)
			})
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCmd())
	path := filepath.Join("testdata", "commands.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("commands are\n%s\nwant\n%s(-update accepts, if docs/promises.md does)", got.String(), want)
	}
}

// Scripts compare exit codes, so these keep their numbers.
func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything else"), 1},
		{usageError{errors.New("flags")}, 2},
		{&artifacts.Mismatch{}, 3},
		{trust.ErrUntrusted, 3},
		{artifacts.ErrVersion, 3},
		{&artifacts.CorruptError{Err: errors.New("damage")}, 5},
		{bundled.ErrArchive, 5},
		{store.ErrDigest, 5},
		{&trace.Error{}, 5},
		{childExit(86), 86},
		{&exec.Error{Name: "engine", Err: exec.ErrNotFound}, 127},
		{interrupted(syscall.SIGINT), 130},
		{interrupted(syscall.SIGTERM), 143},
	} {
		err := tt.err
		if err != nil {
			err = fmt.Errorf("wrapped: %w", err)
		}
		if got := exitCode(err); got != tt.want {
			t.Errorf("%v: exit code %d, want %d", tt.err, got, tt.want)
		}
	}
}
