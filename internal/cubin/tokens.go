package cubin

import "bytes"

// tokens splits PTX into words: directives, names, numbers and single punctuation marks. It treats comments and strings as space.
type tokens struct {
	text   []byte
	at     int
	ahead  string
	peeked bool
	extern bool // the next declaration is defined elsewhere
}

func (t *tokens) peek() string {
	if !t.peeked {
		t.ahead, t.peeked = t.scan(), true
	}
	return t.ahead
}

// next returns "" at the end.
func (t *tokens) next() string {
	if t.peeked {
		t.peeked = false
		return t.ahead
	}
	return t.scan()
}

func (t *tokens) scan() string {
	t.space()
	if t.at >= len(t.text) {
		return ""
	}
	start := t.at
	if !wordByte(t.text[t.at]) {
		t.at++
		return string(t.text[start:t.at])
	}
	for t.at++; t.at < len(t.text) && wordByte(t.text[t.at]) && t.text[t.at] != '.'; {
		t.at++
	}
	return string(t.text[start:t.at])
}

// wordByte: a dot begins a word but does not continue one, so .u64.ptr is two words.
func wordByte(c byte) bool {
	return c == '.' || c == '_' || c == '$' || c == '%' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (t *tokens) space() {
	for t.at < len(t.text) {
		rest := t.text[t.at:]
		switch c := rest[0]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			t.at++
		case bytes.HasPrefix(rest, []byte("//")):
			t.skipTo(rest, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			t.skipTo(rest, "*/")
		case c == '"':
			t.at++
			t.skipTo(rest[1:], `"`)
		default:
			return
		}
	}
}

func (t *tokens) skipTo(rest []byte, end string) {
	i := bytes.Index(rest, []byte(end))
	if i < 0 {
		t.at = len(t.text)
		return
	}
	t.at += i + len(end)
}

// skipBlock skips to after the brace that closes an open one.
func (t *tokens) skipBlock() bool {
	for depth := 1; depth > 0; {
		switch t.next() {
		case "":
			return false
		case "{":
			depth++
		case "}":
			depth--
		}
	}
	return true
}
