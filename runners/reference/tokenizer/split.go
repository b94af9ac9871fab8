package tokenizer

import (
	"strings"
	"unicode"
)

// The two regular expressions that byte-level Llama tokenizers split words with. Go's regexp has no lookahead, so each is
// a function below; a file with any other expression is refused.
const (
	gpt2Pattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// splitters are the patterns and their implementations.
var splitters = map[string]func(r []rune) int{gpt2Pattern: splitGPT2, llama3Pattern: splitLlama3}

var contractions = []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}

func isLetter(r rune) bool { return unicode.IsLetter(r) }
func isNumber(r rune) bool { return unicode.IsNumber(r) }
func isSpace(r rune) bool  { return unicode.IsSpace(r) }
func isLine(r rune) bool   { return r == '\r' || r == '\n' }
func isOther(r rune) bool  { return !isLetter(r) && !isNumber(r) && !isSpace(r) }

// run is the number of leading runes of a class.
func run(r []rune, class func(rune) bool) int {
	n := 0
	for n < len(r) && class(r[n]) {
		n++
	}
	return n
}

// contraction is the length of an English contraction at the start of r, 0 if there is none.
func contraction(r []rune, fold bool) int {
	for _, c := range contractions {
		if len(r) >= len(c) {
			head := string(r[:len(c)])
			if head == c || fold && strings.EqualFold(head, c) {
				return len(c)
			}
		}
	}
	return 0
}

// blanks matches `\s+(?!\S)|\s+`: all of a run but its last, which goes with the word behind it.
func blanks(r []rune) int {
	n := run(r, isSpace)
	if n > 1 && n < len(r) {
		return n - 1
	}
	return n
}

// splitGPT2 is the length of gpt2Pattern's match at the start of r, at least 1.
func splitGPT2(r []rune) int {
	if n := contraction(r, false); n > 0 {
		return n
	}
	lead := 0
	if r[0] == ' ' {
		lead = 1
	}
	for _, class := range []func(rune) bool{isLetter, isNumber, isOther} {
		if n := run(r[lead:], class); n > 0 {
			return lead + n
		}
	}
	return blanks(r)
}

// splitLlama3 is the length of llama3Pattern's match at the start of r, at least 1.
func splitLlama3(r []rune) int {
	if n := contraction(r, true); n > 0 {
		return n
	}
	lead := 0
	if !isLetter(r[0]) && !isNumber(r[0]) && !isLine(r[0]) {
		lead = 1
	}
	if n := run(r[lead:], isLetter); n > 0 {
		return lead + n
	}
	if n := run(r, isNumber); n > 0 {
		return min(n, 3)
	}
	lead = 0
	if r[0] == ' ' {
		lead = 1
	}
	if n := run(r[lead:], isOther); n > 0 {
		n += lead
		return n + run(r[n:], isLine)
	}
	// \s*[\r\n]+ reaches to the last line end of the run of white space.
	for n := run(r, isSpace); n > 0; n-- {
		if isLine(r[n-1]) {
			return n
		}
	}
	return blanks(r)
}
