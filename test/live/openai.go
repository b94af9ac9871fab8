package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"

	"medusa/test/checkpoints"
)

// asked is a question for the openai package.
type asked struct {
	Model     string `json:"model"`
	Prompt    string `json:"prompt"`
	MaxTokens int    `json:"max_tokens"`
	IgnoreEOS bool   `json:"ignore_eos"`
	Chat      bool   `json:"chat"`
	Stream    bool   `json:"stream"`
}

// told is the package's account of an answer.
type told struct {
	Text   string   `json:"text"`
	Reason string   `json:"reason"`
	Tokens []int    `json:"tokens"`
	Models []string `json:"models"`
	Error  string   `json:"error"`
}

// openai asks by the openai package of Python under each policy. Each answer has to equal the engine's own to the same package, and its text the
// engine's own to another client.
func (r *run) openai() (string, error) {
	list, err := r.questions()
	if err != nil {
		return "", fmt.Errorf("the engine alone: %w", err)
	}
	alone, err := r.alone(list)
	if err != nil {
		return "", fmt.Errorf("the engine alone: %w", err)
	}
	streamed := 0
	for _, policy := range policies {
		s, log, err := r.serve("{name: "+policy+"}", models)
		if err != nil {
			return "", err
		}
		questions, which := make([]asked, r.requests), make([][2]int, r.requests)
		rng := rand.New(rand.NewPCG(r.seed, 26))
		for i := range questions {
			form, model := rng.IntN(len(alone[0])), rng.IntN(models)
			questions[i], which[i] = formed(list, form), [2]int{model % len(checkpoints.Names), form}
			questions[i].Model = fmt.Sprint("m", model)
			if questions[i].Stream {
				streamed++
			}
		}
		answers, err := r.python(s.url, questions)
		if err := s.stop(); err != nil {
			return "", fmt.Errorf("%s: %w", policy, err)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", policy, err)
		}
		for i, a := range answers {
			want := alone[which[i][0]][which[i][1]]
			want.Models = []string{questions[i].Model}
			if !reflect.DeepEqual(a, want) {
				return "", fmt.Errorf("%s: request %d, %+v, is answered by %+v, by the engine alone with %+v\n%s", policy, i, questions[i], a, want, tail(s.output()))
			}
		}
		if err := r.replay(log); err != nil {
			return "", fmt.Errorf("%s: %w", policy, err)
		}
	}
	total := len(policies) * r.requests
	return fmt.Sprintf("openai-policies=%d models=%d gpus=2 requests=%d streamed=%d identical=%[3]d", len(policies), models, total, streamed), nil
}

// forms of a question: completion and chat, whole and streamed.
const forms = 4

// formed is the n-th form of all questions.
func formed(list []question, n int) asked {
	q := &list[n/forms]
	return asked{Prompt: q.Prompt, MaxTokens: q.MaxTokens, IgnoreEOS: q.IgnoreEOS, Chat: n%forms > 1, Stream: n%2 == 1}
}

// alone asks the engine of each checkpoint each form of each question. A streamed answer has to be the whole one.
func (r *run) alone(list []question) (answers [][]told, err error) {
	for c, checkpoint := range checkpoints.Names {
		s, err := r.start(append(r.engine("serve", checkpoint), "--served-model-name", checkpoint, "--listen", "127.0.0.1:0")...)
		if err != nil {
			return nil, err
		}
		questions := make([]asked, forms*len(list))
		for n := range questions {
			questions[n] = formed(list, n)
			questions[n].Model = checkpoint
		}
		got, err := r.python(s.url, questions)
		if err != nil {
			return nil, err
		}
		if err := s.stop(); err != nil {
			return nil, err
		}
		for n, a := range got {
			q := &list[n/forms]
			switch {
			case a.Error != "":
				return nil, fmt.Errorf("%+v: %s", questions[n], a.Error)
			case !questions[n].Chat && a.Text != q.want[c]:
				return nil, fmt.Errorf("%q is answered by %q, to another client by %q", q.Prompt, a.Text, q.want[c])
			case questions[n].Stream && !reflect.DeepEqual(a, got[n-1]):
				return nil, fmt.Errorf("%+v: streamed %+v, whole %+v", questions[n], a, got[n-1])
			}
		}
		answers = append(answers, got)
	}
	return answers, nil
}

// python asks questions with the openai package.
func (r *run) python(url string, questions []asked) (answers []told, err error) {
	data, err := json.Marshal(questions)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(r.build, "openai", "venv", "bin", "python"), filepath.Join(filepath.Dir(r.build), "test", "live", "openai", "ask.py"), url)
	cmd.Stdin = bytes.NewReader(data)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask with the openai package: %w\n%s", err, complaints.String())
	}
	if err := json.Unmarshal(out, &answers); err != nil {
		return nil, fmt.Errorf("ask with the openai package: %w", err)
	}
	if len(answers) != len(questions) {
		return nil, fmt.Errorf("ask with the openai package: %d answers to %d questions", len(answers), len(questions))
	}
	return answers, nil
}
