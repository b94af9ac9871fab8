package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"medusa/runners/reference/plainjson"
)

// file is the part of tokenizer.json that this package understands.
type file struct {
	Added []struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens"`
	Normalizer    *component `json:"normalizer"`
	PreTokenizer  *component `json:"pre_tokenizer"`
	PostProcessor *component `json:"post_processor"`
	Decoder       *component `json:"decoder"`
	Model         struct {
		Type         string            `json:"type"`
		Vocab        map[string]int    `json:"vocab"`
		Merges       []json.RawMessage `json:"merges"`
		Unknown      *string           `json:"unk_token"`
		ByteFallback bool              `json:"byte_fallback"`
		IgnoreMerges bool              `json:"ignore_merges"`
	} `json:"model"`
}

// component is a normalizer, pre-tokenizer, post-processor or decoder; a Sequence nests them.
type component struct {
	Type           string      `json:"type"`
	Normalizers    []component `json:"normalizers"`
	PreTokenizers  []component `json:"pretokenizers"`
	Processors     []component `json:"processors"`
	Decoders       []component `json:"decoders"`
	Prepend        string      `json:"prepend"`
	PrependScheme  string      `json:"prepend_scheme"`
	Replacement    string      `json:"replacement"`
	Content        string      `json:"content"`
	AddPrefixSpace bool        `json:"add_prefix_space"`
	UseRegex       *bool       `json:"use_regex"`
	Behavior       string      `json:"behavior"`
	Split          *bool       `json:"split"`
	Pattern        struct {
		String *string `json:"String"`
		Regex  *string `json:"Regex"`
	} `json:"pattern"`
	Single []struct {
		SpecialToken *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	} `json:"single"`
	SpecialTokens map[string]struct {
		IDs []int `json:"ids"`
	} `json:"special_tokens"`
}

// steps are the components inside of c, or c itself if it is no Sequence.
func (c *component) steps() []component {
	if c == nil {
		return nil
	}
	if c.Type == "Sequence" {
		return slices.Concat(c.Normalizers, c.PreTokenizers, c.Processors, c.Decoders)
	}
	return []component{*c}
}

// Parse reads a tokenizer.json; name stands for the file in errors, vocab is the number of ids that the model has.
func Parse(name string, data []byte, vocab int) (Tokenizer, error) {
	fail := func(part, format string, args ...any) error {
		return &Error{File: name, Part: part, Reason: fmt.Sprintf(format, args...)}
	}
	var f file
	if err := plainjson.Unmarshal(data, &f); err != nil {
		return nil, fail("JSON", "%v", err)
	}
	if f.Model.Type != "BPE" {
		return nil, fail("model", "type %q is not BPE", f.Model.Type)
	}
	t := &bpe{
		ids: f.Model.Vocab, pieces: map[int]string{}, ranks: map[pair]int{}, special: map[int]bool{},
		whole: f.Model.IgnoreMerges, byteFallback: f.Model.ByteFallback, unknown: -1,
	}
	for piece, id := range f.Model.Vocab {
		if id < 0 || id >= vocab {
			return nil, fail("model.vocab", "id %d of %q is not below the model's %d", id, piece, vocab)
		}
		t.pieces[id] = piece
	}
	for i, raw := range f.Model.Merges {
		p, err := parseMerge(raw)
		if err != nil {
			return nil, fail("model.merges", "entry %d: %v", i, err)
		}
		t.ranks[p] = i
	}
	for _, a := range f.Added {
		if a.ID < 0 || a.ID >= vocab || a.Content == "" {
			return nil, fail("added_tokens", "%q has id %d of %d", a.Content, a.ID, vocab)
		}
		t.added = append(t.added, added{a.Content, a.ID})
		t.pieces[a.ID] = a.Content
		t.special[a.ID] = a.Special
	}
	// The longest of several added tokens at one place wins.
	slices.SortStableFunc(t.added, func(a, b added) int { return len(b.text) - len(a.text) })
	if f.Model.Unknown != nil {
		if id, ok := f.Model.Vocab[*f.Model.Unknown]; ok {
			t.unknown = id
		}
	}
	if err := t.splitAs(&f); err != nil {
		return nil, fail("normalizer, pre_tokenizer", "%v", err)
	}
	if err := t.beginAs(&f, vocab); err != nil {
		return nil, fail("post_processor", "%v", err)
	}
	return t, nil
}

// parseMerge reads "left right" or ["left", "right"].
func parseMerge(raw json.RawMessage) (pair, error) {
	var parts []string
	var text string
	if json.Unmarshal(raw, &text) == nil {
		parts = strings.Split(text, " ")
	} else if err := plainjson.Unmarshal(raw, &parts); err != nil {
		return pair{}, err
	}
	if len(parts) != 2 {
		return pair{}, fmt.Errorf("%d pieces, want 2", len(parts))
	}
	return pair{parts[0], parts[1]}, nil
}

// splitAs sets how text becomes words.
func (t *bpe) splitAs(f *file) error {
	for _, n := range f.Normalizer.steps() {
		switch {
		case n.Type == "Prepend" && n.Prepend == space:
			t.prefixSpace, t.prefixAll = true, true
		case n.Type == "Replace" && n.Pattern.String != nil && *n.Pattern.String == " " && n.Content == space:
		default:
			return fmt.Errorf("normalizer %s is not supported", n.Type)
		}
	}
	for _, p := range f.PreTokenizer.steps() {
		switch p.Type {
		case "ByteLevel":
			t.byteLevel, t.prefixSpace = true, p.AddPrefixSpace
			if p.UseRegex == nil || *p.UseRegex {
				t.split = splitGPT2
			}
		case "Split":
			if p.Pattern.Regex == nil || splitters[*p.Pattern.Regex] == nil || p.Behavior != "Isolated" {
				return fmt.Errorf("split pattern is neither GPT-2's nor Llama 3's")
			}
			t.split = splitters[*p.Pattern.Regex]
		case "Metaspace":
			if p.Replacement != space || p.Split == nil || *p.Split {
				return fmt.Errorf("a Metaspace that splits words is not supported")
			}
			t.prefixSpace, t.prefixAll = p.PrependScheme != "never", p.PrependScheme == "always"
		default:
			return fmt.Errorf("pre_tokenizer %s is not supported", p.Type)
		}
	}
	if t.split != nil && !t.byteLevel {
		return fmt.Errorf("a split pattern without ByteLevel is not supported")
	}
	if t.byteLevel && t.split == nil {
		t.split = func(r []rune) int { return len(r) }
	}
	return nil
}

// beginAs sets the ids in front of every text.
func (t *bpe) beginAs(f *file, vocab int) error {
	for _, p := range f.PostProcessor.steps() {
		switch p.Type {
		case "ByteLevel":
		case "TemplateProcessing":
			for _, piece := range p.Single {
				if piece.SpecialToken == nil {
					break // the text itself: a prompt is not concerned with the rest
				}
				ids := p.SpecialTokens[piece.SpecialToken.ID].IDs
				for _, id := range ids {
					if id < 0 || id >= vocab {
						return fmt.Errorf("id %d of %q is not below the model's %d", id, piece.SpecialToken.ID, vocab)
					}
				}
				t.bos = append(t.bos, ids...)
			}
		default:
			return fmt.Errorf("%s is not supported", p.Type)
		}
	}
	return nil
}
