package printable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
)

// JSON writes a value with indentation. encoding/json escapes the control characters of ASCII except DEL. JSON also escapes DEL,
// Unicode's control characters and those that change the direction of text. They occur inside strings only, and the escaped
// strings mean the same.
func JSON(w io.Writer, v any) error {
	var exact, out bytes.Buffer
	e := json.NewEncoder(&exact)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	for _, r := range exact.String() {
		switch {
		case r < 0x7f || strconv.IsPrint(r): // mutant: escapes in JSON
			out.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		}
	}
	_, err := out.WriteTo(w)
	return err
}
