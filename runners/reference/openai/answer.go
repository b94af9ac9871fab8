package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"medusa/runners/reference/serve"
	"medusa/runners/reference/tokenizer"
)

// answer is the answer that a client gets: one object, or a stream of them.
type answer struct {
	kind    kind
	model   string
	id      string
	created int64
	request *request
	tokens  []int
	stream  *stream
	begun   bool // the stream's first piece is written
}

type response struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

type choice struct {
	Index        int           `json:"index"`
	Text         *string       `json:"text,omitempty"`
	Message      *content      `json:"message,omitempty"`
	Delta        *content      `json:"delta,omitempty"`
	TokenIDs     []int         `json:"token_ids,omitempty"`
	FinishReason *serve.Reason `json:"finish_reason"`
}

type content struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func (a *answer) usage() *usage {
	return &usage{len(a.request.prompt), len(a.tokens), len(a.request.prompt) + len(a.tokens)}
}

func (a *answer) object(part string, c choice) *response {
	name := "text_completion"
	if a.kind == chat {
		name = "chat.completion" + part
	}
	return &response{ID: a.id, Object: name, Created: a.created, Model: a.model, Choices: []choice{c}}
}

func (a *answer) ids(list []int) []int {
	if a.request.ReturnTokenIDs {
		return list
	}
	return nil
}

// whole is the answer as one object.
func (a *answer) whole(text string, reason serve.Reason) *response {
	c := choice{TokenIDs: a.ids(a.tokens), FinishReason: &reason}
	if a.kind == chat {
		c.Message = &content{"assistant", text}
	} else {
		c.Text = &text
	}
	r := a.object("", c)
	r.Usage = a.usage()
	return r
}

// piece streams a part of the answer, which may hold no text yet.
func (a *answer) piece(text string, ids []int) error { return a.write(text, ids, nil) }

// finish streams the rest of the text, the usage if it was asked for, and the end.
func (a *answer) finish(text string, reason serve.Reason) error {
	if err := a.write(text, nil, &reason); err != nil {
		return err
	}
	if a.request.StreamOptions.IncludeUsage {
		r := a.object(".chunk", choice{})
		r.Choices, r.Usage = []choice{}, a.usage()
		if err := a.stream.event(r); err != nil {
			return err
		}
	}
	return a.stream.raw("[DONE]")
}

func (a *answer) write(text string, ids []int, reason *serve.Reason) error {
	c := choice{TokenIDs: a.ids(ids), FinishReason: reason}
	if a.kind == chat {
		c.Delta = &content{Content: text}
		if !a.begun {
			c.Delta.Role = "assistant"
		}
	} else {
		c.Text = &text
	}
	a.begun = true
	return a.stream.event(a.object(".chunk", c))
}

// fail reports an error: with a status if the stream has not begun, or else as the stream's last event.
func (a *answer) fail(w http.ResponseWriter, err error) {
	if a.stream == nil || !a.stream.begun {
		fail(w, err)
		return
	}
	_ = a.stream.event(classify(err).Body()) // a client that has left reads no error
}

// stream writes server-sent events, each at once.
type stream struct {
	w     http.ResponseWriter
	out   *http.ResponseController
	begun bool
}

func newStream(w http.ResponseWriter) *stream {
	return &stream{w: w, out: http.NewResponseController(w)}
}

func (s *stream) event(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.raw(string(data))
}

func (s *stream) raw(data string) error {
	if !s.begun {
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Cache-Control", "no-cache")
		s.begun = true
	}
	if _, err := fmt.Fprintf(s.w, "data: %s\n\n", data); err != nil {
		return err
	}
	return s.out.Flush()
}

// text cuts the text of growing tokens into pieces that each end with a whole character.
type text struct {
	tokenizer tokenizer.Tokenizer
	ids       []int
	given     int // bytes
}

// add returns the text that a further token brings.
func (t *text) add(id int) string {
	t.ids = append(t.ids, id)
	all := t.tokenizer.Decode(t.ids)
	end := len(all)
	for back := 1; back < utf8.UTFMax && back <= len(all)-t.given; back++ {
		if b := all[len(all)-back]; utf8.RuneStart(b) {
			// mutant: characters of several tokens
			if !utf8.FullRuneInString(all[len(all)-back:]) {
				end = len(all) - back
			}
			break
		}
	}
	return t.take(all[:end])
}

// rest returns the text that was held back.
func (t *text) rest() string { return t.take(t.tokenizer.Decode(t.ids)) }

func (t *text) take(all string) string {
	piece := all[min(t.given, len(all)):]
	t.given = len(all)
	return strings.ToValidUTF8(piece, "\uFFFD")
}
