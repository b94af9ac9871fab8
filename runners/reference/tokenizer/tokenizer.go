// Package tokenizer turns text into token ids and back, as a Hugging Face tokenizer.json of type BPE says (byte-level as
// GPT-2 and Llama 3 use it, or with byte fallback as Llama 2), or byte by byte where a checkpoint has no tokenizer.json.
//
// In: the file, the model's vocabulary size and its special ids. Out: a Tokenizer. A file that asks for something this
// package does not do is an *Error that names the part: text would be cut differently than the model was trained on.
package tokenizer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FileName is the tokenizer's name inside a checkpoint directory.
const FileName = "tokenizer.json"

// Tokenizer translates between text and token ids. It is safe for concurrent use.
type Tokenizer interface {
	// Encode returns the ids of a text, with the id that begins every text in front where the tokenizer has one.
	Encode(text string) []int
	// Decode returns the text of ids. Special and unknown ids yield nothing.
	Decode(ids []int) string
}

// Error says what is wrong with a tokenizer file.
type Error struct {
	File, Part, Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("read tokenizer %s: %s: %s", e.File, e.Part, e.Reason)
}

// Load reads dir/tokenizer.json, or returns the byte tokenizer where there is none. bos is the id that begins a text of
// the byte tokenizer, -1 for none; a tokenizer.json decides that itself.
func Load(dir string, vocab, bos int) (Tokenizer, error) {
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Bytes(vocab, bos)
	}
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	return Parse(path, data, vocab)
}

// byteTokenizer's ids are the bytes of UTF-8 text.
type byteTokenizer struct{ bos int }

// Bytes returns the tokenizer whose ids 0 to 255 are bytes.
func Bytes(vocab, bos int) (Tokenizer, error) {
	if vocab < 256 {
		return nil, &Error{File: "(none)", Part: "byte tokenizer", Reason: fmt.Sprintf("a vocabulary of %d has no room for 256 bytes (add a %s)", vocab, FileName)}
	}
	return byteTokenizer{bos}, nil
}

func (t byteTokenizer) Encode(text string) []int {
	var ids []int
	if t.bos >= 0 {
		ids = append(ids, t.bos)
	}
	for _, b := range []byte(text) {
		ids = append(ids, int(b))
	}
	return ids
}

func (t byteTokenizer) Decode(ids []int) string {
	var text []byte
	for _, id := range ids {
		if id >= 0 && id < 256 && id != t.bos {
			text = append(text, byte(id))
		}
	}
	return string(text)
}
