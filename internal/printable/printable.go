// Package printable makes text that a file or a registry chose fit for a terminal.
//
// In: names and messages of any bytes. Out: the same with every character that is not printed escaped as in Go, so that nothing in
// an artifact moves the cursor, changes colours, hides what follows or starts a line of its own; or values as JSON, which says exactly
// what they are in characters that are printed. Only writing can fail. Pictures do not come here.
package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Line escapes line breaks and tabs as well.
func Line(s string) string { return escape(s, "") }

// Text leaves line breaks and tabs: of messages that have several lines.
func Text(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	var out strings.Builder
	from := 0 // of what is not in out yet
	for at := 0; at < len(s); {
		r, size := utf8.DecodeRuneInString(s[at:])
		damaged := r == utf8.RuneError && size == 1
		if !damaged && (strconv.IsPrint(r) || strings.ContainsRune(keep, r)) {
			at += size
			continue
		}
		out.WriteString(s[from:at])
		if damaged {
			fmt.Fprintf(&out, `\x%02x`, s[at])
		} else {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		at += size
		from = at
	}
	return out.String() + s[from:]
}
