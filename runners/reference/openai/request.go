package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"medusa/internal/apierror"
	"medusa/runners/reference/serve"
)

// kind is one of the two endpoints.
type kind int

const (
	completions kind = iota
	chat
)

func (k kind) prefix() string {
	if k == chat {
		return "chatcmpl"
	}
	return "cmpl"
}

// request is a body, as far as it changes the answer.
type request struct {
	Model               string          `json:"model"`
	Prompt              json.RawMessage `json:"prompt"`
	Messages            []message       `json:"messages"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	IgnoreEOS      bool `json:"ignore_eos"`       // as vLLM has it
	ReturnTokenIDs bool `json:"return_token_ids"` // as vLLM has it

	prompt []int
	limits serve.Limits
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// refused are fields that would change the answer in a way that the engine does not know. A value without an effect is accepted:
// null, false, 0, an empty text, list or object, and for those listed with 1 also 1.
var refused = map[string]float64{
	"temperature": 0, "n": 1, "best_of": 1, "echo": 0, "logprobs": 0, "top_logprobs": 0, "suffix": 0, "stop": 0, "stop_token_ids": 0,
	"logit_bias": 0, "presence_penalty": 0, "frequency_penalty": 0, "repetition_penalty": 1, "min_tokens": 0, "tools": 0, "functions": 0,
	"response_format": 0, "prompt_logprobs": 0, "use_beam_search": 0,
}

func asksForNothing(v any, neutral float64) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case float64:
		return v == 0 || v == neutral
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func invalid(param, format string, args ...any) error {
	return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Param: param, Message: fmt.Sprintf(format, args...)}
}

// read reads and checks a request.
func (s *Server) read(w http.ResponseWriter, r *http.Request, k kind) (*request, error) {
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	q := &request{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, invalid("", "read body: %v", err)
	}
	if err := json.Unmarshal(body, q); err != nil {
		return nil, invalid("", "read body: %v", err)
	}
	for name, neutral := range refused {
		if !asksForNothing(fields[name], neutral) {
			if name == "temperature" {
				return nil, invalid(name, "temperature %v is not supported: answers are greedy (leave it out, or use 0)", fields[name])
			}
			return nil, invalid(name, "%s is not supported (leave it out)", name)
		}
	}
	if q.Model != s.Model {
		return nil, &apierror.Error{Status: http.StatusNotFound, Kind: apierror.Request, Code: "model_not_found", Param: "model",
			Message: fmt.Sprintf("the model %q does not exist, this is %q", q.Model, s.Model)}
	}
	if q.prompt, err = s.prompt(q, k); err != nil {
		return nil, err
	}
	return q, s.limit(q, k)
}

// limit decides the length of the answer.
func (s *Server) limit(q *request, k kind) error {
	room := s.MaxModelLen - len(q.prompt)
	if len(q.prompt) == 0 {
		return invalid("prompt", "the prompt is empty")
	}
	most := 16 // OpenAI's default of completions
	if k == chat {
		most = max(room, 1)
	}
	for _, given := range []*int{q.MaxTokens, q.MaxCompletionTokens} {
		if given != nil {
			most = *given
		}
	}
	if most < 1 {
		return invalid("max_tokens", "max_tokens is %d, at least 1 is needed", most)
	}
	if most > room {
		return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Code: "context_length_exceeded", Message: fmt.Sprintf(
			"the model takes %d tokens; the prompt has %d and the answer may have %d", s.MaxModelLen, len(q.prompt), most)}
	}
	q.limits = serve.Limits{MaxTokens: most, IgnoreEOS: q.IgnoreEOS}
	return nil
}

// prompt returns the tokens of a request's prompt or messages.
func (s *Server) prompt(q *request, k kind) ([]int, error) {
	if k == chat {
		text, err := transcript(q.Messages)
		if err != nil {
			return nil, err
		}
		return s.encode(text)
	}
	var text string
	var list []json.RawMessage
	var ids []int
	switch {
	case json.Unmarshal(q.Prompt, &text) == nil && len(q.Prompt) > 0:
		return s.encode(text)
	case json.Unmarshal(q.Prompt, &ids) == nil && len(ids) > 0:
		return ids, nil
	case json.Unmarshal(q.Prompt, &list) == nil && len(list) == 1:
		only := *q
		only.Prompt = list[0]
		return s.prompt(&only, k)
	}
	return nil, invalid("prompt", "prompt is neither one text nor one list of token ids")
}

func (s *Server) encode(text string) ([]int, error) {
	ids, err := s.Tokenizer.Encode(text)
	if err != nil {
		return nil, invalid("prompt", "%v", err)
	}
	return ids, nil
}

// transcript is the chat template of this engine, which runs no template of a checkpoint: a line "ROLE: CONTENT" for each message,
// and "assistant:" behind them.
func transcript(messages []message) (string, error) {
	if len(messages) == 0 {
		return "", invalid("messages", "there are no messages")
	}
	var out strings.Builder
	for i, m := range messages {
		content, ok := m.text()
		if !ok || m.Role == "" {
			return "", invalid("messages", "message %d needs a role, and content that is text", i)
		}
		fmt.Fprintf(&out, "%s: %s\n", m.Role, content)
	}
	out.WriteString("assistant:")
	return out.String(), nil
}

// text returns the content, which is a text or a list of parts that are texts.
func (m message) text() (string, bool) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text, true
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return "", false
	}
	for _, p := range parts {
		if p.Type != "text" {
			return "", false
		}
		text += p.Text
	}
	return text, true
}
