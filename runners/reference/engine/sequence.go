package engine

import "fmt"

// Sequence is one text on its way: its tokens, and the KV-cache blocks that hold the first of them.
type Sequence struct {
	tokens []int
	cached int // tokens whose keys and values are in the cache
	blocks []int32
}

// LengthError says that a text is too long, too short, or has a token that the model lacks.
type LengthError struct{ Tokens, Most int }

func (e *LengthError) Error() string {
	return fmt.Sprintf("take sequence: %d tokens, between 1 and %d are possible (raise --max-model-len)", e.Tokens, e.Most)
}

// NewSequence makes a sequence of a prompt's tokens. It computes no step.
func (e *Engine) NewSequence(prompt []int) (*Sequence, error) {
	if len(prompt) < 1 || len(prompt) > e.options.MaxModelLen-1 {
		return nil, &LengthError{len(prompt), e.options.MaxModelLen - 1}
	}
	for _, id := range prompt {
		if id < 0 || id >= e.config.VocabSize {
			return nil, fmt.Errorf("take sequence: token %d is not below the vocabulary's size %d", id, e.config.VocabSize)
		}
	}
	return &Sequence{tokens: append([]int(nil), prompt...)}, nil
}

// Tokens are the prompt and the tokens generated so far.
func (s *Sequence) Tokens() []int { return s.tokens }

// Full reports whether the sequence has as many tokens as one can have.
func (e *Engine) Full(s *Sequence) bool { return len(s.tokens) >= e.options.MaxModelLen }

// Rewind forgets the tokens behind the first n, so that decoding goes on from there once more.
func (s *Sequence) Rewind(n int) {
	s.tokens = s.tokens[:n]
	s.cached = min(s.cached, n-1)
}

// Drop gives the sequence's blocks back.
func (e *Engine) Drop(s *Sequence) {
	e.kv.give(s.blocks)
	s.blocks, s.cached = nil, 0
}

// BlocksOf is the number of KV-cache blocks that a sequence of a number of tokens takes.
func (e *Engine) BlocksOf(tokens int) int {
	return (min(tokens, e.options.MaxModelLen) + e.options.PageSize - 1) / e.options.PageSize
}

// FreeBlocks is the number of KV-cache blocks that no sequence has.
func (e *Engine) FreeBlocks() int { return len(e.kv.free) }

// KVBlocks is the number of blocks of the KV cache, the null block included.
func (e *Engine) KVBlocks() int { return e.kv.blocks }

// reserve makes sure that the sequence has a block for the token at a position.
func (e *Engine) reserve(s *Sequence, position int) error {
	for len(s.blocks)*e.options.PageSize <= position {
		id, err := e.kv.take()
		if err != nil {
			return err
		}
		s.blocks = append(s.blocks, id)
	}
	return nil
}

// Step is the result of a forward: for each sequence the next token, and its logits if Engine.WantLogits is set.
type Step struct {
	Next   []int
	Logits [][]float32
}

// accept appends the tokens of a step to their sequences.
func (s Step) accept(sequences []*Sequence) {
	for i, q := range sequences {
		q.cached = len(q.tokens)
		q.tokens = append(q.tokens, s.Next[i])
	}
}
