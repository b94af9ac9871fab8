package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// space stands for a blank in SentencePiece vocabularies.
const space = "▁"

// pair is two neighbouring pieces.
type pair struct{ left, right string }

// bpe is a byte-pair encoder. A text is cut at added tokens, normalised, split into words, and each word's pieces are
// merged in the order of training until no merge applies.
type bpe struct {
	ids     map[string]int
	pieces  map[int]string
	ranks   map[pair]int
	special map[int]bool // ids that stand for no text
	added   []added      // longest first
	bos     []int        // in front of every text

	byteLevel    bool               // pieces are made of the byte alphabet; otherwise of characters with byte fallback
	split        func(r []rune) int // byte-level: the length of the first word
	prefixSpace  bool               // a blank goes in front of the text
	prefixAll    bool               // ... and in front of the text behind an added token
	whole        bool               // a word that is in the vocabulary needs no merges
	byteFallback bool
	unknown      int // -1: none
}

// added is a token that is found in the text before anything else.
type added struct {
	text string
	id   int
}

func (t *bpe) Encode(text string) ([]int, error) {
	ids := append([]int(nil), t.bos...)
	first := true
	for text != "" {
		at, tok := t.nextAdded(text)
		if at > 0 {
			ids = t.encodePlain(ids, text[:at], first)
		}
		first = false
		if tok == nil {
			break
		}
		ids = append(ids, tok.id)
		text = text[at+len(tok.text):]
	}
	return ids, nil
}

// nextAdded finds the first added token in text; without one it returns the text's length and nil.
func (t *bpe) nextAdded(text string) (int, *added) {
	best, tok := len(text), (*added)(nil)
	for i := range t.added {
		if at := strings.Index(text, t.added[i].text); at >= 0 && at < best {
			best, tok = at, &t.added[i]
		}
	}
	return best, tok
}

func (t *bpe) encodePlain(ids []int, text string, first bool) []int {
	if !t.byteLevel {
		text = strings.ReplaceAll(text, " ", space)
		if t.prefixSpace && (first || t.prefixAll) {
			text = space + text
		}
		return t.encodeWord(ids, text)
	}
	if t.prefixSpace && !strings.HasPrefix(text, " ") {
		text = " " + text
	}
	for r := []rune(text); len(r) > 0; {
		n := t.split(r)
		ids = t.encodeWord(ids, toAlphabet(string(r[:n])))
		r = r[n:]
	}
	return ids
}

// encodeWord merges the pieces of one word, the earliest learnt merge first.
func (t *bpe) encodeWord(ids []int, word string) []int {
	if id, ok := t.ids[word]; ok && t.whole {
		return append(ids, id)
	}
	pieces := strings.Split(word, "")
	for len(pieces) > 1 {
		best, at := len(t.ranks), -1
		for i := range len(pieces) - 1 {
			if rank, ok := t.ranks[pair{pieces[i], pieces[i+1]}]; ok && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		pieces[at] += pieces[at+1]
		pieces = append(pieces[:at+1], pieces[at+2:]...)
	}
	for _, p := range pieces {
		if id, ok := t.ids[p]; ok {
			ids = append(ids, id)
			continue
		}
		ids = t.encodeUnknown(ids, p)
	}
	return ids
}

// encodeUnknown spells a piece that the vocabulary lacks in bytes, or as the unknown token, or leaves it out.
func (t *bpe) encodeUnknown(ids []int, piece string) []int {
	if t.byteFallback {
		var spelt []int
		for _, b := range []byte(piece) {
			if id, ok := t.ids[byteName(b)]; ok {
				spelt = append(spelt, id)
			}
		}
		if len(spelt) == len(piece) {
			return append(ids, spelt...)
		}
	}
	if t.unknown >= 0 {
		ids = append(ids, t.unknown)
	}
	return ids
}

// byteName is how a vocabulary with byte fallback calls a byte.
func byteName(b byte) string { return fmt.Sprintf("<0x%02X>", b) }

func (t *bpe) Decode(ids []int) string {
	var text []byte
	for _, id := range ids {
		piece, ok := t.pieces[id]
		if !ok || t.special[id] {
			continue
		}
		var b byte
		switch {
		case t.byteLevel:
			text = append(text, fromAlphabet(piece)...)
		case t.byteFallback && len(piece) == 6 && scanByte(piece, &b):
			text = append(text, b)
		default:
			text = append(text, strings.ReplaceAll(piece, space, " ")...)
		}
	}
	if !t.byteLevel && t.prefixSpace {
		return strings.TrimPrefix(string(text), " ")
	}
	return string(text)
}

func scanByte(name string, b *byte) bool {
	_, err := fmt.Sscanf(name, "<0x%02X>", b)
	return err == nil && name == byteName(*b)
}

// The byte alphabet of GPT-2: bytes that print stand for themselves, the others for characters from U+0100 on, so that
// every byte string is a string of printing characters.
var toChar, toByte = func() (chars [256]rune, bytes map[rune]byte) {
	bytes = map[rune]byte{}
	next := rune(256)
	for b := range 256 {
		c := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) {
			c = next
			next++
		}
		chars[b], bytes[c] = c, byte(b)
	}
	return chars, bytes
}()

func toAlphabet(text string) string {
	var s strings.Builder
	for _, b := range []byte(text) {
		s.WriteRune(toChar[b])
	}
	return s.String()
}

// fromAlphabet reverses toAlphabet; characters outside of the alphabet, which only added tokens have, stay as they are.
func fromAlphabet(piece string) []byte {
	var text []byte
	for _, c := range piece {
		if b, ok := toByte[c]; ok {
			text = append(text, b)
		} else {
			text = utf8.AppendRune(text, c)
		}
	}
	return text
}
