package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// shouts are texts that a terminal would not show but obey.
var shouts = []string{"\x1b]0;title\x07", "\x1b[2J\x1b[31m", "\r\x1b[A", "\u009b2J", "\u202e"}

// screens looks at artifacts that have such texts in every place for a text, with every command that prints a part of an artifact.
func screens(ctx context.Context, a *attacker) error {
	counts := map[string]int{}
	list := shouts
	if a.n < 1000 {
		list = []string{strings.Join(shouts, "")}
	}
	for _, shout := range list {
		p, err := a.newPlace()
		if err != nil {
			return err
		}
		b := a.bases[0]
		file, err := b.taken.Shouting(shout)
		if err != nil {
			return err
		}
		path := filepath.Join(p.out, "shouting.medusa")
		if err := os.WriteFile(path, file, 0o644); err != nil {
			return err
		}
		for _, args := range [][]string{
			{"inspect", path}, {"inspect", "--kernels", path}, {"inspect", "--allocs", path}, {"inspect", "--sizes", path}, {"inspect", "--text", path},
			{"inspect", "--graph", "0", path}, {"inspect", "--graph", "9", path}, {"inspect", "-o", "json", path}, {"diff", b.path, path}, {"verify", path},
			{"restore", path, "--", filepath.Join(a.build, "zoo")}, {"restore", "--strict", path, "--", filepath.Join(a.build, "zoo")},
		} {
			e, err := p.run(ctx, b.env, "medusa", args...)
			if err != nil {
				return err
			}
			where := fmt.Sprintf("screen: medusa %s with %q in every text", strings.ReplaceAll(strings.Join(args, " "), filepath.Dir(p.dir), ""), shout)
			if text := panicked(e.stderr); text != "" {
				a.found(panics, where, "%s", text)
			}
			if i := strings.IndexFunc(e.stdout+e.stderr, obeyed); i >= 0 {
				text := e.stdout + e.stderr
				a.found(escape, where, "%q", text[max(0, i-30):min(len(text), i+10)])
				counts["obeyed"]++
			} else {
				counts["shown"]++
			}
		}
		a.try(1)
		if err := p.close(a.tally, "screen"); err != nil {
			return err
		}
	}
	a.line("screens", counts)
	return nil
}

// obeyed are characters that terminals obey, or that turn text around.
func obeyed(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069')
}
