package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"medusa/test/testenv"
)

// A command line in a page: an indented line, or inline code.
var commandLine = regexp.MustCompile("(?m)(?:^(?:    |\\t)[ ]*(?:[A-Z_]+=\\S+ )*|`)(?:build/)?medusa ([a-z][^`\\n]*)")

// documentedLines returns the command lines of all pages, by page.
func documentedLines(t *testing.T) map[string][]string {
	t.Helper()
	root, out := testenv.Root(t), map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "build" || d.Name() == ".git" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		page, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		for _, m := range commandLine.FindAllStringSubmatch(string(page), -1) {
			out[name] = append(out[name], m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unknown returns the command or flag of a line that `medusa help` does not know,
// or "".
func unknown(line string) string {
	line, _, _ = strings.Cut(line, " #")
	words := strings.Fields(line)
	cmd := newRootCmd()
	for len(words) > 0 {
		sub := find(cmd, words[0])
		if sub == nil {
			break
		}
		cmd, words = sub, words[1:]
	}
	arguments := strings.Contains(cmd.Use, " ") // its own, beside its subcommands
	if cmd.HasSubCommands() && !arguments && (cmd.Parent() == nil || len(words) > 0 && !strings.HasPrefix(words[0], "-")) {
		return "command " + strings.Join(words[:1], " ")
	}
	for _, word := range words {
		name, _, _ := strings.Cut(strings.TrimRight(word, ",.;:)]"), "=")
		switch name = strings.TrimLeft(name, "[("); {
		case name == "--":
			return "" // the engine's own command
		case strings.HasPrefix(name, "--"):
			if name != "--help" && cmd.Flag(name[2:]) == nil {
				return "flag " + name + " of " + cmd.CommandPath()
			}
		case len(name) == 2 && name[0] == '-':
			if cmd.Flags().ShorthandLookup(name[1:]) == nil && cmd.InheritedFlags().ShorthandLookup(name[1:]) == nil {
				return "flag " + name + " of " + cmd.CommandPath()
			}
		}
	}
	return ""
}

func find(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	if cmd.Parent() == nil && (name == "help" || name == "completion") {
		return &cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}}
	}
	return nil
}

// Every command and flag in the documents exists.
func TestDocumentedCommands(t *testing.T) {
	lines := 0
	for page, list := range documentedLines(t) {
		for _, line := range list {
			if strings.HasPrefix(line, "signature v") || strings.HasPrefix(line, "graph ") {
				continue // the first line of a signed text, and of the text dump
			}
			lines++
			if what := unknown(line); what != "" {
				t.Errorf("%s: medusa %s: there is no %s", page, line, what)
			}
		}
	}
	if lines < 60 {
		t.Errorf("%d command lines were found in the documents", lines)
	}
	for line, want := range map[string]string{
		"frobnicate x": "command frobnicate", "restore --nonsense x -- engine": "flag --nonsense of medusa restore",
		"cache frobnicate": "command frobnicate", "materialize -Z x": "flag -Z of medusa materialize", "restore --strict x -- engine --any": "",
	} {
		if got := unknown(line); got != want {
			t.Errorf("%q: %q is unknown, want %q", line, got, want)
		}
	}
}
