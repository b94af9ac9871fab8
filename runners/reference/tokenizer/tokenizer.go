// Package tokenizer turns text into token ids and back, as a Hugging Face tokenizer.json of type BPE says (byte-level as
// GPT-2 and Llama 3 use it, or with byte fallback as Llama 2). A checkpoint without a tokenizer.json has its ids for text.
//
// In: the file and the model's vocabulary size. Out: a Tokenizer. A file that asks for something this
// package does not do is an *Error that names the part: text would be cut differently than the model was trained on.
package tokenizer

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// FileName is the tokenizer's name inside a checkpoint directory.
const FileName = "tokenizer.json"

// Tokenizer translates between text and token ids. It is safe for concurrent use.
type Tokenizer interface {
	// Encode returns the ids of a text, with the id that begins every text in front if the tokenizer has one.
	Encode(text string) ([]int, error)
	// Decode returns the text of ids. Special and unknown ids yield no text.
	Decode(ids []int) string
}

// Error is a mistake in a tokenizer file.
type Error struct {
	File, Part, Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("read tokenizer %s: %s: %s", e.File, e.Part, e.Reason)
}

// Load reads dir/tokenizer.json. An error that is fs.ErrNotExist says that there is none.
func Load(dir string, vocab int) (Tokenizer, error) {
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	return Parse(path, data, vocab)
}

// IDs returns the tokenizer of a model of so many ids that has none: its text is the ids themselves, as decimal numbers with blanks
// between them.
func IDs(vocab int) Tokenizer { return ids(vocab) }

type ids int

func (n ids) Encode(text string) ([]int, error) {
	var out []int
	for _, word := range strings.Fields(text) {
		id, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("encode %q: %q is no token id (without a %s, a prompt is token ids such as \"1 15 7\")", text, word, FileName)
		}
		if id < 0 || id >= int(n) {
			return nil, fmt.Errorf("encode %q: token id %d is not below the vocabulary's size %d", text, id, int(n))
		}
		out = append(out, id)
	}
	return out, nil
}

// Decode puts a blank in front of each id: the text that it returns continues a prompt.
func (n ids) Decode(list []int) string {
	var text strings.Builder
	for _, id := range list {
		fmt.Fprintf(&text, " %d", id)
	}
	return text.String()
}
