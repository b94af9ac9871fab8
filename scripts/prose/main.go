// Command prose counts a few words in this repository's documents and comments.
//
// In: the files that git knows below the working directory. Out: a table of rates per 1,000 words, documents and comments apart,
// and then one row per file, with the most "where" and "what" first. It skips code in Markdown, generated files and names in
// backquotes. Plain English says "if" for a condition and keeps "where" for places. The table is a hint for writers, not a check.
// With -sentences N it prints N sentences instead, at places that -seed decides, for readers who compare two versions.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var counted = []string{"if", "where", "what", "nothing", "nobody", "who"}

var (
	generated    = regexp.MustCompile(`_gen\.|\.pb\.go$|contract\.py$`)
	fence        = regexp.MustCompile("(?s)```.*?```")
	indented     = regexp.MustCompile(`(?m)^    .*$`)
	quoted       = regexp.MustCompile("`[^`\n]*`")
	goComment    = regexp.MustCompile(`(?s)/\*(.*?)\*/|(?:^|\s)//([^\n]*)`)
	pythonText   = regexp.MustCompile(`(?s)"""(.*?)"""|(?:^|\s)#([^\n]*)`)
	wordsOfProse = regexp.MustCompile(`[a-z']+`)
)

// prose returns the part of a file that people read: a document without its code, or the comments of a source file.
func prose(path, text string) string {
	var comments *regexp.Regexp
	switch filepath.Ext(path) {
	case ".md":
		for _, code := range []*regexp.Regexp{fence, indented, quoted} {
			text = code.ReplaceAllString(text, " ")
		}
		return text
	case ".py":
		comments = pythonText
	default:
		comments = goComment
	}
	var out strings.Builder
	for _, m := range comments.FindAllStringSubmatch(text, -1) {
		out.WriteString(m[1] + m[2] + "\n")
	}
	return out.String()
}

type tally struct {
	name  string
	words int
	of    map[string]int
}

func (t *tally) add(text string) {
	for _, w := range wordsOfProse.FindAllString(strings.ToLower(text), -1) {
		t.words++
		if slices.Contains(counted, w) {
			t.of[w]++
		}
	}
}

func (t *tally) print() {
	fmt.Printf("%-44s%8d", t.name, t.words)
	for _, w := range counted {
		fmt.Printf("%9.1f", 1000*float64(t.of[w])/float64(max(t.words, 1)))
	}
	fmt.Println()
}

func main() {
	n := flag.Int("sentences", 0, "print so many sentences instead of the table")
	seed := flag.Uint64("seed", 1, "decides the places of the sentences")
	flag.Parse()
	if err := run(*n, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(n int, seed uint64) error {
	list, err := exec.Command("git", "ls-files", "*.md", "*.go", "*.c", "*.h", "*.py").Output()
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	documents, comments := &tally{name: "documents", of: map[string]int{}}, &tally{name: "comments", of: map[string]int{}}
	var files []*tally
	var all []sentence
	for _, path := range strings.Fields(string(list)) {
		if generated.MatchString(path) {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		kind := comments
		if filepath.Ext(path) == ".md" {
			kind = documents
		}
		file := &tally{name: path, of: map[string]int{}}
		text := prose(path, string(raw))
		all = append(all, sentencesOf(path, text)...)
		file.add(text)
		kind.add(text)
		files = append(files, file)
	}
	if n > 0 {
		for _, s := range sample(all, n, seed) {
			fmt.Println(s)
		}
		return nil
	}
	fmt.Printf("%-44s%8s", "per 1,000 words", "words")
	for _, w := range counted {
		fmt.Printf("%9s", w)
	}
	fmt.Println()
	documents.print()
	comments.print()
	fmt.Println()
	slices.SortStableFunc(files, func(a, b *tally) int { return cmp.Compare(b.of["where"]+b.of["what"], a.of["where"]+a.of["what"]) })
	for _, f := range files {
		if f.words > 0 {
			f.print()
		}
	}
	return nil
}
