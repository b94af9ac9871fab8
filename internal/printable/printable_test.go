package printable

import "testing"

func TestEscaped(t *testing.T) {
	for _, tt := range []struct{ in, line, text string }{
		{"", "", ""},
		{"_Z6kernelPfi<8×4> 模型 'x' \"y\" \\z", "_Z6kernelPfi<8×4> 模型 'x' \"y\" \\z", "_Z6kernelPfi<8×4> 模型 'x' \"y\" \\z"},
		{"\x1b[2J\x1b]0;title\a", `\x1b[2J\x1b]0;title\a`, `\x1b[2J\x1b]0;title\a`},
		{"a\nb\tc\r\b\x00\x7f", `a\nb\tc\r\b\x00\x7f`, "a\nb\tc" + `\r\b\x00\x7f`},
		{"\u009b31m \x9b31m \xff", `\u009b31m \x9b31m \xff`, `\u009b31m \x9b31m \xff`}, // CSI of eight bits, in UTF-8 and as it is
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
