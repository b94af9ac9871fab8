package stubengine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// StatusError is an answer with another status than 200.
type StatusError struct {
	Status int
	Retry  string // the header
	Body   string
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Body) }

// Ask sends a completion request and returns the text of the answer. A stream has to end as OpenAI's do.
func Ask(ctx context.Context, url, model, prompt string, stream bool) (string, error) {
	data, err := json.Marshal(map[string]any{"model": model, "prompt": prompt, "stream": stream})
	if err != nil {
		return "", err
	}
	return Post(ctx, url+"/v1/completions", data, stream)
}

// Post sends a body, as Ask.
func Post(ctx context.Context, url string, data []byte, stream bool) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return "", &StatusError{response.StatusCode, response.Header.Get("Retry-After"), string(text)}
	}
	if stream {
		return readStream(response.Body)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	return pieceOf(text)
}

// pieceOf returns the text of an object of an answer.
func pieceOf(data []byte) (string, error) {
	var o struct {
		Choices []struct{ Text string }
		Error   *struct{ Message string }
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return "", fmt.Errorf("read answer %q: %w", data, err)
	}
	if o.Error != nil {
		return "", fmt.Errorf("error in the stream: %s", o.Error.Message)
	}
	if len(o.Choices) != 1 {
		return "", fmt.Errorf("read answer %q: %d choices", data, len(o.Choices))
	}
	return o.Choices[0].Text, nil
}

func readStream(r io.Reader) (text string, err error) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		if data == "[DONE]" {
			return text, nil
		}
		piece, err := pieceOf([]byte(data))
		if err != nil {
			return text, err
		}
		text += piece
	}
	return text, fmt.Errorf("the stream ends after %q without [DONE]", text)
}
