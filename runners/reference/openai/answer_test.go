package openai

import (
	"strings"
	"testing"
)

// bytewise is a tokenizer whose tokens are bytes.
type bytewise struct{}

func (bytewise) Encode(string) ([]int, error) { return nil, nil }

func (bytewise) Decode(ids []int) string {
	var out strings.Builder
	for _, id := range ids {
		out.WriteByte(byte(id))
	}
	return out.String()
}

// Each piece of a stream is whole characters, although tokens end within them, and together they are the text.
func TestPiecesAreWholeCharacters(t *testing.T) {
	for want, bytes := range map[string]string{
		"aé€😀z": "aé€😀z", "\uFFFDa": "\xf0\x9fa", "a\uFFFD": "a\xe2\x82", "\uFFFDx": "\x80x",
	} {
		text := text{tokenizer: bytewise{}}
		var pieces []string
		for _, b := range []byte(bytes) {
			pieces = append(pieces, text.add(int(b)))
		}
		pieces = append(pieces, text.rest())
		if got := strings.Join(pieces, ""); got != want {
			t.Errorf("%q in pieces %q is %q, want %q", bytes, pieces, got, want)
		}
	}
}
