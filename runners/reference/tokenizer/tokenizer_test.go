package tokenizer

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// byteLevelFile is a byte-level tokenizer with all bytes and a few merges.
func byteLevelFile(pattern string) []byte {
	vocab := map[string]int{}
	for b := range 256 {
		vocab[toAlphabet(string([]byte{byte(b)}))] = b
	}
	for i, piece := range []string{"th", "the", "Ġthe", "Ġc"} {
		vocab[piece] = 256 + i
	}
	pre := any(map[string]any{"type": "ByteLevel", "add_prefix_space": false})
	if pattern != "" {
		pre = map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": pattern}, "behavior": "Isolated"},
			map[string]any{"type": "ByteLevel", "use_regex": false},
		}}
	}
	data, err := json.Marshal(map[string]any{
		"added_tokens":  []any{map[string]any{"id": 299, "content": "<|end|>", "special": true}},
		"pre_tokenizer": pre,
		"post_processor": map[string]any{"type": "TemplateProcessing",
			"single":         []any{map[string]any{"SpecialToken": map[string]any{"id": "<|end|>"}}, map[string]any{"Sequence": map[string]any{"id": "A"}}},
			"special_tokens": map[string]any{"<|end|>": map[string]any{"ids": []int{299}}}},
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{"t h", []string{"th", "e"}, "Ġ the", "Ġ c"}},
	})
	if err != nil {
		panic(err)
	}
	return data
}

// sentencePieceFile is a tokenizer with byte fallback as Llama 2's.
func sentencePieceFile() []byte {
	vocab := map[string]int{"<unk>": 0, "<s>": 1, "▁": 300, "a": 301, "b": 302, "▁a": 303, "▁ab": 304}
	for b := range 256 {
		vocab[byteName(byte(b))] = 3 + b
	}
	data, err := json.Marshal(map[string]any{
		"added_tokens": []any{map[string]any{"id": 1, "content": "<s>", "special": true}},
		"normalizer": map[string]any{"type": "Sequence", "normalizers": []any{
			map[string]any{"type": "Prepend", "prepend": "▁"},
			map[string]any{"type": "Replace", "pattern": map[string]any{"String": " "}, "content": "▁"}}},
		"model": map[string]any{"type": "BPE", "vocab": vocab, "unk_token": "<unk>", "byte_fallback": true,
			"merges": []string{"▁ a", "▁a b"}},
	})
	if err != nil {
		panic(err)
	}
	return data
}

func mustParse(t testing.TB, data []byte) Tokenizer {
	t.Helper()
	tok, err := Parse("tokenizer.json", data, 310)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestEncodings(t *testing.T) {
	for _, row := range []struct {
		name string
		tok  Tokenizer
		text string
		want []int
	}{
		{"merges by rank", mustParse(t, byteLevelFile("")), "the cat", []int{299, 257, 259, 'a', 't'}},
		{"blank goes with the word", mustParse(t, byteLevelFile("")), "x  the", []int{299, 'x', ' ', 258}},
		{"added token in the text", mustParse(t, byteLevelFile("")), "a<|end|>b", []int{299, 'a', 299, 'b'}},
		{"Llama 3 pattern", mustParse(t, byteLevelFile(llama3Pattern)), "the 1234", []int{299, 257, ' ', '1', '2', '3', '4'}},
		{"SentencePiece", mustParse(t, sentencePieceFile()), "ab a", []int{304, 303}},
		{"blank behind an added token", mustParse(t, sentencePieceFile()), "a<s>a", []int{303, 1, 303}},
		{"no tokenizer", IDs(300), " 7  299 0 ", []int{7, 299, 0}},
		{"byte fallback", mustParse(t, sentencePieceFile()), "é", []int{300, 3 + 0xc3, 3 + 0xa9}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got, err := row.tok.Encode(row.text); err != nil || !slices.Equal(got, row.want) {
				t.Errorf("Encode(%q) = %v, %v; want %v", row.text, got, err, row.want)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	for _, row := range []struct {
		split func([]rune) int
		text  string
		want  []string
	}{
		{splitGPT2, "I'll go  home\n\nin 1999!", []string{"I", "'ll", " go", " ", " home", "\n", "\n", "in", " 1999", "!"}},
		{splitGPT2, "end   ", []string{"end", "   "}},
		{splitGPT2, " '", []string{" '"}},
		{splitLlama3, "I'LL go  home\n\nin 12345!\n", []string{"I", "'LL", " go", " ", " home", "\n\n", "in", " ", "123", "45", "!\n"}},
		{splitLlama3, "a \n  b", []string{"a", " \n", " ", " b"}},
		{splitLlama3, "(x", []string{"(x"}},
	} {
		var got []string
		for r := []rune(row.text); len(r) > 0; {
			n := row.split(r)
			got = append(got, string(r[:n]))
			r = r[n:]
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%q splits into %q, want %q", row.text, got, row.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	good := string(byteLevelFile(llama3Pattern))
	for _, row := range []struct{ name, from, to, part string }{
		{"model type", `"type":"BPE"`, `"type":"Unigram"`, "model"},
		{"pattern", `\\p{N}{1,3}`, `\\p{N}{1,4}`, "pre_tokenizer"},
		{"merge", `"t h"`, `"t h e"`, "merges"},
		{"id", `"th":256`, `"th":310`, "vocab"},
		{"added id", `"id":299`, `"id":-1`, "added_tokens"},
		{"post processor", `"TemplateProcessing"`, `"RobertaProcessing"`, "post_processor"},
		{"no JSON", `{`, ``, "JSON"},
		{"mistyped", `"id":299`, `"id":"299"`, "JSON"},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := strings.Replace(good, row.from, row.to, 1)
			if text == good {
				t.Fatal("the row changes nothing")
			}
			_, err := Parse("dir/tokenizer.json", []byte(text), 310)
			var bad *Error
			if !errors.As(err, &bad) || bad.File != "dir/tokenizer.json" || !strings.Contains(bad.Part, row.part) {
				t.Errorf("got %v, want an *Error about %q", err, row.part)
			}
		})
	}
	for text, want := range map[string]string{"the cat": "no token id", "3 300": "not below", "-1": "not below"} {
		if ids, err := IDs(300).Encode(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without a tokenizer, %q became %v, %v", text, ids, err)
		}
	}
	if text := IDs(300).Decode([]int{7, 299}); text != " 7 299" {
		t.Errorf("token ids are printed as %q", text)
	}
	if _, err := Load(t.TempDir(), 300); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without the file: %v", err)
	}
}

// Decoding encoded text gives the text back, for any text.
func FuzzRoundTrip(f *testing.F) {
	toks := []Tokenizer{mustParse(f, byteLevelFile("")), mustParse(f, byteLevelFile(llama3Pattern)), mustParse(f, sentencePieceFile())}
	for _, text := range []string{"", "the cat", "  two  blanks ", "héllo ✓\n\t…", "ab ab"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "<|end|>") || strings.Contains(text, "<s>") || strings.Contains(text, space) || strings.ToValidUTF8(text, "") != text {
			return // special tokens, the blank's stand-in and broken UTF-8 do not come back
		}
		for i, tok := range toks {
			ids, err := tok.Encode(text)
			if got := tok.Decode(ids); err != nil || got != text {
				t.Errorf("tokenizer %d: %q came back as %q, %v", i, text, got, err)
			}
		}
	})
}
