// Package specfile reads the spec files of code generators, and writes what they make.
//
// In: text in which a row begins a line and its members are the indented lines below it. Comment lines directly above a row
// document it. Out: the rows, and names in Go's spelling. Fails: if a member has no row; the error names the line.
package specfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Row is a row with its members and its documentation.
type Row struct {
	Line    int
	Doc     []string // the comment lines directly above
	Words   []string
	Members []Member
}

// Member is an indented line. Doc is the text after " # ".
type Member struct {
	Line  int
	Words []string
	Doc   string
}

// Parse returns the rows in order.
func Parse(text string) ([]Row, error) {
	var rows []Row
	var doc []string
	for i, line := range strings.Split(text, "\n") {
		if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok {
			doc = append(doc, strings.TrimSpace(comment))
			continue
		}
		code, comment, _ := strings.Cut(line, " # ")
		words := strings.Fields(code)
		switch {
		case len(words) == 0:
		case line[0] != ' ' && line[0] != '\t':
			rows = append(rows, Row{Line: i + 1, Doc: doc, Words: words})
		case len(rows) == 0:
			return nil, fmt.Errorf("line %d: a member without a row: %q", i+1, line)
		default:
			row := &rows[len(rows)-1]
			row.Members = append(row.Members, Member{i + 1, words, strings.TrimSpace(comment)})
		}
		doc = nil
	}
	return rows, nil
}

var initialisms = map[string]string{
	"id": "ID", "pid": "PID", "dso": "DSO", "kv": "KV", "sha256": "SHA256", "cc": "CC", "sm": "SM", "vmm": "VMM", "ipc": "IPC",
}

// GoName converts a name of lower-case words and underscores to Go's spelling.
func GoName(name string) string {
	var b strings.Builder
	for _, w := range strings.Split(name, "_") {
		if up, ok := initialisms[w]; ok {
			b.WriteString(up)
			continue
		}
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

// Write writes files by their paths below a folder, and makes the folders that they are in.
func Write(dir string, files map[string][]byte) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
