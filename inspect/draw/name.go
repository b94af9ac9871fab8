package draw

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ShortName shortens a kernel's name for a picture. From a mangled C++ name (Itanium ABI, section 5.1) it takes the function's
// own name without namespaces, template arguments and parameters. It keeps any other name.
func ShortName(mangled string) string {
	rest, ok := strings.CutPrefix(mangled, "_Z")
	if !ok {
		return mangled
	}
	rest, nested := strings.CutPrefix(rest, "N")
	rest = strings.TrimLeft(rest, "VKL") // qualifiers, and internal linkage
	name := ""
	for {
		digits := 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n == 0 || n > len(rest)-digits {
			break
		}
		name, rest = rest[digits:digits+n], rest[digits+n:]
		if !nested {
			break
		}
		if strings.HasPrefix(rest, "I") { // template arguments end a function's name, or belong to a class that we skip
			break
		}
	}
	if name == "" || !utf8.ValidString(name) {
		return mangled
	}
	return name
}

// fit shortens a text in the middle, because kernel names differ at both ends.
func fit(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	head := (most - 1) * 2 / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(most-1-head):])
}
