package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
)

var (
	cSyntax      = syntax{never: "0 && (%s)", always: "1 || (%s)", negate: "!(%s)", skip: "if (0) { %s }"}
	pythonSyntax = syntax{never: " False and (%s)", always: " True or (%s)", negate: " not (%s)", skip: "if False: %s"}
)

var (
	cHead      = regexp.MustCompile(`^(?:\} *else +)?(if|while|for|switch) *\(`)
	pythonHead = regexp.MustCompile(`^(?:if|elif|while)\b`)
)

// first returns the place of a marker's statement: on its own line if code stands before it, else on the next that
// is not empty.
func first(source []byte, m marker) (int, error) {
	at := m.end
	if m.trailing {
		at = bytes.LastIndexByte(source[:m.start], '\n') + 1
	}
	for at < len(source) && bytes.IndexByte([]byte(" \t\n"), source[at]) >= 0 {
		at++
	}
	if at == len(source) {
		return 0, errors.New("no statement follows the marker")
	}
	return at, nil
}

// cStatement takes an if or while with its condition in parentheses, a macro with all of its lines, or a text that ends at a
// semicolon.
func cStatement(source []byte, m marker) (*statement, error) {
	at, err := first(source, m)
	if err != nil {
		return nil, err
	}
	s := &statement{syntax: cSyntax}
	rest := source[at:]
	end, body := -1, false
	if head := cHead.FindSubmatch(rest); head != nil {
		body = true
		if end = closing(rest, len(head[0]), ')', 0); string(head[1]) == "if" || string(head[1]) == "while" {
			s.condition = span{at + len(head[0]), at + end}
		}
	} else if rest[0] == '#' {
		body = true
		for end = bytes.IndexByte(rest, '\n'); end > 0 && rest[end-1] == '\\'; {
			end += 1 + bytes.IndexByte(rest[end+1:], '\n')
		}
		end--
	} else {
		end = closing(rest, 0, ';', 0)
	}
	if end < 0 {
		return nil, fmt.Errorf("%.40q has no end", rest)
	}
	s.head = span{at, at + end + 1}
	if !body {
		s.whole = s.head
	}
	return s, nil
}

// pythonStatement takes an if, elif or while up to its colon, or a logical line.
func pythonStatement(source []byte, m marker) (*statement, error) {
	at, err := first(source, m)
	if err != nil {
		return nil, err
	}
	rest := source[at:]
	if head := pythonHead.Find(rest); head != nil {
		end := closing(rest, len(head), ':', '#')
		if end < 0 {
			return nil, fmt.Errorf("%.40q has no end", rest)
		}
		return &statement{syntax: pythonSyntax, head: span{at, at + end + 1}, condition: span{at + len(head), at + end}}, nil
	}
	end := closing(rest, 0, '\n', '#')
	if end < 0 {
		return nil, fmt.Errorf("%.40q has no end", rest)
	}
	whole := span{at, at + end}
	return &statement{syntax: pythonSyntax, whole: whole, head: whole}, nil
}

// closing returns the place of the byte's next occurrence outside of parentheses and literals that open behind from, -1 if there is none.
func closing(text []byte, from int, want, comment byte) int {
	depth := 0
	for i := from; i < len(text); i++ {
		switch c := text[i]; {
		case depth == 0 && c == want:
			return i
		case c == comment:
			i += bytes.IndexByte(text[i:], '\n') - 1
		case bytes.HasPrefix(text[i:], []byte("/*")):
			i += 1 + bytes.Index(text[i:], []byte("*/"))
		case c == '"' || c == '\'':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			if depth--; depth < 0 {
				return -1
			}
		}
	}
	return -1
}
