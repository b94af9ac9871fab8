package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"medusa/test/checkpoints"
)

// question is a request of a client.
type question struct {
	ID        int     `json:"id"`
	Model     string  `json:"model"`
	Prompt    string  `json:"prompt"`
	MaxTokens int     `json:"max_tokens"`
	IgnoreEOS bool    `json:"ignore_eos"`
	Stream    bool    `json:"stream"`
	Leave     float64 `json:"leave,omitempty"` // seconds until the client leaves; 0: it stays

	want []string // by checkpoint: the engine's own answer
}

// reply is the answer that a client got.
type reply struct {
	ID     int    `json:"id"`
	Text   string `json:"text"`
	Finish string `json:"finish"`
	Status int    `json:"status"` // of an error
	Error  string `json:"error"`
	Broken string `json:"broken"` // a connection or stream that broke off
	Left   bool   `json:"left"`
}

// clients is a running program that asks with the openai package.
type clients struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// clients starts the program.
func (r *run) clients(url string, atATime int) (*clients, error) {
	program, err := files.ReadFile("ask.py")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(r.work, "ask.py")
	if err := os.WriteFile(path, program, 0o600); err != nil {
		return nil, err
	}
	c := &clients{cmd: exec.Command(filepath.Join(r.venv, "bin", "python"), path, url, strconv.Itoa(atATime))}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	c.out.Buffer(nil, 1<<20)
	return c, c.cmd.Start()
}

// all asks questions and calls got for each reply. There is one for each question.
func (r *run) all(url string, atATime int, list []question, got func(q *question, a *reply) error) error {
	c, err := r.clients(url, atATime)
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		enc := json.NewEncoder(c.in)
		var err error
		for i := range list {
			list[i].ID = i
			if err = enc.Encode(&list[i]); err != nil {
				break
			}
		}
		sent <- errors.Join(err, c.in.Close())
	}()
	answered := map[int]bool{}
	var wrong error
	for c.out.Scan() {
		var a reply
		if err := json.Unmarshal(c.out.Bytes(), &a); err != nil {
			return fmt.Errorf("read reply: %w: %s", err, c.out.Text())
		}
		if answered[a.ID] {
			return fmt.Errorf("request %d has two replies", a.ID)
		}
		answered[a.ID] = true
		if err := got(&list[a.ID], &a); err != nil && wrong == nil {
			wrong = fmt.Errorf("request %d for %s: %w", a.ID, list[a.ID].Model, err)
		}
	}
	if err := errors.Join(<-sent, c.out.Err(), c.cmd.Wait(), wrong); err != nil {
		return err
	}
	if len(answered) != len(list) {
		return fmt.Errorf("%d of %d requests have a reply", len(answered), len(list))
	}
	return nil
}

// distinct is the number of different questions.
const distinct = 24

// words are words of the text on which the checkpoints were trained.
const words = "In the beginning God created the heaven and the earth And the LORD said unto Moses Go down Behold I will send a prophet"

// learn asks the engine of each checkpoint alone.
func (r *run) learn() ([]question, error) {
	rng := rand.New(rand.NewPCG(r.seed, 27))
	vocabulary := strings.Fields(words)
	list := make([]question, distinct)
	for i := range list {
		q := &list[i]
		for range 1 + rng.IntN(12) {
			q.Prompt += " " + vocabulary[rng.IntN(len(vocabulary))]
		}
		q.MaxTokens, q.IgnoreEOS = 1+rng.IntN(24), rng.IntN(2) == 0
	}
	for _, c := range checkpoints.Names {
		port, err := freePort("127.0.0.1")
		if err != nil {
			return nil, err
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		p, err := r.start("http://", append(r.engine("serve", c), "--served-model-name", c, "--listen", address)...)
		if err != nil {
			return nil, err
		}
		for i := range list {
			list[i].Model, list[i].Stream = c, i%2 == 0
		}
		err = r.all("http://"+address, 1, list, func(q *question, a *reply) error {
			q.want = append(q.want, a.Text)
			if a.Finish == "" {
				return fmt.Errorf("the engine alone: %+v", *a)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		p.kill()
	}
	differ := 0
	for i := range list {
		if list[i].want[0] != list[i].want[1] {
			differ++
		}
	}
	if differ < distinct/4 {
		return nil, fmt.Errorf("the checkpoints answer %d of %d questions differently: mixed-up engines would not show", differ, distinct)
	}
	return list, nil
}

// load makes requests of the questions: random models, all but each eighth streamed.
func (r *run) load(known []question, n int, seed uint64) []question {
	rng := rand.New(rand.NewPCG(r.seed, seed))
	list := make([]question, n)
	for i := range list {
		list[i] = known[rng.IntN(len(known))]
		model := rng.IntN(models)
		list[i].Model, list[i].Stream = fmt.Sprintf("m%d", model), i%8 != 7
		list[i].want = list[i].want[model%len(checkpoints.Names) : model%len(checkpoints.Names)+1]
	}
	return list
}

// judge returns nil if an answer is that of the engine alone.
func judge(q *question, a *reply) error {
	switch {
	case a.Status != 0:
		return fmt.Errorf("status %d: %s", a.Status, a.Error)
	case a.Broken != "":
		return errors.New(a.Broken)
	case a.Finish == "":
		return fmt.Errorf("lost silently: the answer ends after %q without a reason", a.Text)
	case a.Text != q.want[0]:
		return fmt.Errorf("%q is answered by %q, by the engine alone with %q", q.Prompt, a.Text, q.want[0])
	}
	return nil
}
