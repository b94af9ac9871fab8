package serve

import (
	"fmt"
	"slices"

	"medusa/runners/reference/engine"
)

// Reason says why a text has ended.
type Reason string

// The reasons, in the words of the OpenAI API.
const (
	Stop   Reason = "stop"   // an end-of-text token
	Length Reason = "length" // the limit, or the longest text that the model takes
)

// Job is a prompt on its way to an answer.
type Job struct {
	Prompt []int
	Limits Limits
	Token  func(id int)   // is called for each token of the answer, which has no end-of-text token unless it is ignored
	Ended  func(r Reason) // is called once, after the last token

	sequence *engine.Sequence
	blocks   int // of the KV cache, at its full length
}

// Batch is the work of an engine: jobs that run, and jobs that wait for room. As many run at a time as the engine's largest
// batch and its KV cache take at their full length. One that ends makes room for the next, so the batch size changes on the way.
// A Batch belongs to the engine's thread.
type Batch struct {
	e        *engine.Engine
	promised int // blocks that running jobs have or may still need
	target   int // blocks of the KV cache once a resize is done; 0: none is on its way
	waiting  []*Job
	running  []*Job
}

// NewBatch makes an empty Batch. No sequence of the engine may be left.
func NewBatch(e *engine.Engine) *Batch { return &Batch{e: e} }

// room is the number of blocks that no running job was promised, now and after a resize that is on its way. The null block is no job's.
func (b *Batch) room() int {
	blocks := b.e.KVBlocks()
	if b.target != 0 {
		blocks = min(blocks, b.target)
	}
	return blocks - 1 - b.promised
}

// Idle reports whether there is no job.
func (b *Batch) Idle() bool { return len(b.waiting)+len(b.running) == 0 }

// Add queues a job.
func (b *Batch) Add(j *Job) error {
	if b.e.Asleep() != 0 {
		return fmt.Errorf("answer request: %w", ErrAsleep)
	}
	s, err := b.e.NewSequence(j.Prompt)
	if err != nil {
		return err
	}
	j.sequence, j.blocks = s, b.e.BlocksOf(len(j.Prompt)+j.Limits.MaxTokens)
	b.waiting = append(b.waiting, j)
	return nil
}

// Remove ends a job early, if it is still there. Its functions are not called any more.
func (b *Batch) Remove(j *Job) {
	b.waiting = slices.DeleteFunc(b.waiting, func(k *Job) bool { return k == j })
	if i := slices.Index(b.running, j); i >= 0 {
		b.leave(j)
		b.running = slices.Delete(b.running, i, i+1)
	}
}

// leave frees the resources of a running job.
func (b *Batch) leave(j *Job) {
	// mutant: blocks of a client that has left
	b.e.Drop(j.sequence)
	b.promised -= j.blocks
}

// Step admits waiting jobs and computes their first token, and then the next token of all that run.
func (b *Batch) Step() error {
	if admitted := b.admit(); len(admitted) > 0 {
		if _, err := b.e.Prefill(admitted); err != nil {
			return err
		}
		b.hand(len(b.running) - len(admitted))
	}
	if len(b.running) == 0 {
		return nil
	}
	batch := make([]*engine.Sequence, len(b.running))
	for i, j := range b.running {
		batch[i] = j.sequence
	}
	if _, err := b.e.Decode(batch); err != nil {
		return err
	}
	b.hand(0)
	return nil
}

// admit lets jobs run in the order in which they came.
func (b *Batch) admit() (admitted []*engine.Sequence) {
	for len(b.waiting) > 0 && len(b.running) < b.e.MaxBatch() {
		j := b.waiting[0]
		// The cache holds the longest text at least once, so the first of a batch always has room.
		if j.blocks > b.room() && len(b.running) > 0 {
			break
		}
		b.promised += j.blocks
		b.waiting = b.waiting[1:]
		b.running = append(b.running, j)
		admitted = append(admitted, j.sequence)
	}
	return admitted
}

// hand passes on the newest token of each running job from the n-th, and takes out those that have ended.
func (b *Batch) hand(n int) {
	kept := b.running[:n]
	for _, j := range b.running[n:] {
		tokens := j.sequence.Tokens()
		generated := len(tokens) - len(j.Prompt)
		stop := !j.Limits.IgnoreEOS && slices.Contains(b.e.Config().EOS, tokens[len(tokens)-1])
		if !stop && generated <= j.Limits.MaxTokens {
			j.Token(tokens[len(tokens)-1])
		}
		switch {
		case stop:
			b.leave(j)
			j.Ended(Stop)
		case generated >= j.Limits.MaxTokens || b.e.Full(j.sequence):
			b.leave(j)
			j.Ended(Length)
		default:
			kept = append(kept, j)
		}
	}
	clear(b.running[len(kept):])
	b.running = kept
}

// drop ends all jobs early.
func (b *Batch) drop() {
	for _, j := range b.running {
		b.leave(j)
	}
	b.running, b.waiting = nil, nil
}

// Resize gives an elastic KV cache another number of bytes. While running jobs have blocks that are to go, or could come to need them, the
// answer is false. Then fewer jobs are admitted: call it again between later steps, or Keep.
func (b *Batch) Resize(bytes uint64) (done bool, err error) {
	if b.e.Asleep() != 0 {
		b.target = 0
		return false, fmt.Errorf("resize KV cache: %w", ErrAsleep)
	}
	if b.target, err = b.e.BlocksFor(bytes); err != nil {
		b.target = 0
		return false, err
	}
	// mutant: blocks that running jobs may still need
	if b.room() < 0 {
		return false, nil
	}
	if done, err = b.e.ResizeKV(bytes); done || err != nil {
		b.target = 0
	}
	return done, err
}

// Keep ends a resize that is not done.
func (b *Batch) Keep() {
	if b.target != 0 {
		b.target = 0
		b.e.KeepKV()
	}
}
