// Package printable makes text from files and registries safe for a terminal.
//
// In: names and messages of any bytes. Out: the same text with every non-printable character escaped as in Go. An artifact can
// then not move the cursor, change colours, hide text or start a line of its own. JSON values keep their exact meaning in
// printable characters. Fails: if writing does. Pictures do not use this package.
package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Line also escapes line breaks and tabs.
func Line(s string) string { return escape(s, "") }

// Text keeps line breaks and tabs, for messages of several lines.
func Text(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	var out strings.Builder
	from := 0 // start of the part that is not in out yet
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
