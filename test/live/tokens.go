package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"medusa/test/checkpoints"
	"medusa/test/stubengine"
)

// policies are the policies on the page of results.
var policies = []string{"mqfq", "torpor", "lalbo3", "fcfs"}

// question is a client's question, and the answer of the engine alone.
type question struct {
	Prompt    string   `json:"prompt"`
	MaxTokens int      `json:"max_tokens"`
	IgnoreEOS bool     `json:"ignore_eos"`
	want      []string // by checkpoint
}

// distinct is the number of different questions.
const distinct = 40

// words of the text on which the checkpoints were trained.
const words = "In the beginning God created the heaven and the earth And the LORD said unto Moses Go down Behold I will send a prophet"

// questions asks the engine of each checkpoint alone, one question after the other.
func (r *run) questions() ([]question, error) {
	rng := rand.New(rand.NewPCG(r.seed, 25))
	list := make([]question, distinct)
	vocabulary := strings.Fields(words)
	for i := range list {
		q := &list[i]
		for range 1 + rng.IntN(12) {
			q.Prompt += " " + vocabulary[rng.IntN(len(vocabulary))]
		}
		q.MaxTokens, q.IgnoreEOS = 1+rng.IntN(24), rng.IntN(2) == 0
	}
	for _, c := range checkpoints.Names {
		s, err := r.start(append(r.engine("serve", c), "--served-model-name", c, "--listen", "127.0.0.1:0")...)
		if err != nil {
			return nil, err
		}
		for i := range list {
			text, err := list[i].ask(s.url, c, false)
			if err != nil {
				return nil, err
			}
			list[i].want = append(list[i].want, text)
		}
		if err := s.stop(); err != nil {
			return nil, err
		}
	}
	differ := 0
	for _, q := range list {
		if q.want[0] != q.want[1] {
			differ++
		}
	}
	if differ < distinct/4 {
		return nil, fmt.Errorf("the checkpoints answer %d of %d questions differently: mixed-up engines would not show", differ, distinct)
	}
	return list, nil
}

func (q *question) ask(url, model string, stream bool) (string, error) {
	data, err := json.Marshal(struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		*question
	}{model, stream, q})
	if err != nil {
		return "", err
	}
	ctx, cancel := within()
	defer cancel()
	return stubengine.Post(ctx, url+"/v1/completions", data, stream)
}

// atATime is the number of clients that ask at the same time.
const atATime = 12

// models of a run. Four of them fit on the GPUs at a time.
const models = 10

// tokens asks under each policy, and compares every answer with that of the engine alone.
func (r *run) tokens() (string, error) {
	list, err := r.questions()
	if err != nil {
		return "", fmt.Errorf("the engine alone: %w", err)
	}
	starts, restored, woken, measured := 0, 0, 0, 0
	for _, policy := range policies {
		s, log, err := r.serve("{name: "+policy+"}", models)
		if err != nil {
			return "", err
		}
		var wrong atomic.Pointer[error]
		each(r.requests, atATime, func(i int) {
			rng := rand.New(rand.NewPCG(r.seed+1, uint64(i)))
			q, model := &list[rng.IntN(distinct)], rng.IntN(models)
			text, err := q.ask(s.url, fmt.Sprint("m", model), i%2 == 0)
			if err == nil && text != q.want[model%len(checkpoints.Names)] {
				err = fmt.Errorf("%q is answered by %q, by the engine alone with %q", q.Prompt, text, q.want[model%len(checkpoints.Names)])
			}
			if err != nil {
				err = fmt.Errorf("%s: request %d of m%d: %w", policy, i, model, err)
				wrong.CompareAndSwap(nil, &err)
			}
		})
		sleepers, bad := s.measured()
		if err := errors.Join(bad, s.stop()); err != nil {
			return "", fmt.Errorf("%s: %w", policy, err)
		}
		measured += sleepers
		starts += strings.Count(s.output(), "serving m")
		restored += strings.Count(s.output(), "start restored")
		woken += strings.Count(s.output(), "\nawake\n")
		if err := wrong.Load(); err != nil {
			return "", fmt.Errorf("%w\n%s", *err, s.output())
		}
		if err := r.replay(log); err != nil {
			return "", fmt.Errorf("%s: %w", policy, err)
		}
	}
	if starts <= len(policies)*models || woken == 0 || restored == 0 || measured == 0 {
		return "", fmt.Errorf("engines were started %d times and woken %d times, %d starts were restored, %d sleepers were measured: this shows too little", starts, woken, restored, measured)
	}
	return fmt.Sprintf("policies=%d models=%d gpus=2 requests=%d identical=%[3]d starts=%[4]d restored=%[5]d woken=%[6]d sleepers-measured=%[7]d replayed=%[1]d", len(policies), models,
		len(policies)*r.requests, starts, restored, woken, measured), nil
}

// each calls work for 0 to n-1, some at a time.
func each(n, atATime int, work func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range atATime {
		all.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// until works on one number after the other, several at a time, and ends once over is closed. count is how many it has begun.
func until(over <-chan struct{}, atATime int, count *atomic.Int64, work func(i int)) {
	each(atATime, atATime, func(int) {
		for {
			select {
			case <-over:
				return
			default:
				work(int(count.Add(1)))
			}
		}
	})
}

// checked asks the i-th question of one of so many models, and fails if the answer is not that of the engine alone.
func checked(list []question, i, models int, url string) error {
	q, model := &list[i%distinct], i%models
	text, err := q.ask(url, fmt.Sprint("m", model), i%2 == 0)
	if err == nil && text != q.want[model%len(checkpoints.Names)] {
		return &wrongAnswer{q.Prompt, text}
	}
	return err
}

// wrongAnswer is an answer that differs from that of the engine alone.
type wrongAnswer struct{ prompt, text string }

func (e *wrongAnswer) Error() string { return fmt.Sprintf("%q is answered by %q", e.prompt, e.text) }
