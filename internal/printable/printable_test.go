package printable

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestEscaped(t *testing.T) {
	for _, tt := range []struct{ in, line, text string }{
		{"", "", ""},
		{"_Z6kernelPfi<8×4> 模型 'x' \"y\" \\z", "_Z6kernelPfi<8×4> 模型 'x' \"y\" \\z", "_Z6kernelPfi<8×4> 模型 'x' \"y\" \\z"},
		{"\x1b[2J\x1b]0;title\a", `\x1b[2J\x1b]0;title\a`, `\x1b[2J\x1b]0;title\a`},
		{"a\nb\tc\r\b\x00\x7f", `a\nb\tc\r\b\x00\x7f`, "a\nb\tc" + `\r\b\x00\x7f`},
		{"\u009b31m \x9b31m \xff", `\u009b31m \x9b31m \xff`, `\u009b31m \x9b31m \xff`}, // 8-bit CSI, in UTF-8 and as a raw byte
		{"user\u202egnp.exe \u2066x\u2069 a\u2028b\u200bc", `user\u202egnp.exe \u2066x\u2069 a\u2028b\u200bc`, `user\u202egnp.exe \u2066x\u2069 a\u2028b\u200bc`},
		{"\ufffd", "\ufffd", "\ufffd"},
	} {
		if got := Line(tt.in); got != tt.line {
			t.Errorf("line %q is %q, want %q", tt.in, got, tt.line)
		}
		if got := Text(tt.in); got != tt.text {
			t.Errorf("text %q is %q, want %q", tt.in, got, tt.text)
		}
	}
}

// JSON keeps the meaning and escapes characters that a terminal would obey.
func TestJSON(t *testing.T) {
	for _, text := range []string{"", "_Z1kPf<8×4> 模型 \"y\" \\z <&>", "\x1b[2J\a\r\n\t\x7f", "\u009b31m \u0080", "\u202e \u2066 \u2028 \u200b \ufeff", "\U000e0041\U0010ffff 𝕏", `\u009b`} {
		var out bytes.Buffer
		if err := JSON(&out, map[string]string{text: text}); err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) != 1 || got[text] != text {
			t.Errorf("%q is %q, %v", text, got, err)
		}
		if s := out.String(); Text(s) != s {
			t.Errorf("%q is printed as %q", text, s)
		}
	}
	var out bytes.Buffer
	if err := JSON(&out, []any{"\u202e模", "\U000e0041"}); err != nil {
		t.Fatal(err)
	}
	if want := "[\n  \"\\u202e模\",\n  \"\\udb40\\udc41\"\n]\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
