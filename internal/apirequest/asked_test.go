package apirequest

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"medusa/internal/apierror"
)

func form(fields ...string) string {
	var b strings.Builder
	for i := 0; i < len(fields); i += 2 {
		b.WriteString("--b\r\nContent-Disposition: form-data; name=\"" + fields[i] + "\"\r\n\r\n" + fields[i+1] + "\r\n")
	}
	return b.String() + "--b--\r\n"
}

const file = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\x00\r\n--bb\r\n\xff\r\n"

// Forms and queries name their model as bodies do.
func TestForm(t *testing.T) {
	e, _ := Find("POST", "/v1/audio/transcriptions")
	h := http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}
	for _, row := range []struct {
		body, model string
		stream      bool
		code        string // of the error; "": none
		want        string
	}{
		{file + form("model", "a", "stream", "true"), "a", true, "", ""},
		{form("MODEL", "b", "model", "a"), "a", false, "", ""},
		{form("prompt", "model"), "", false, "", ""},
		{form("model", "a", "model", "b"), "", false, "duplicate_member", "twice"},
		{form("model", strings.Repeat("x", 5000)), "", false, "", "more than"},
		{form(strings.Split(strings.Repeat("x,", 2000), ",")[:2000]...), "", false, "", ""},
		{form(strings.Split(strings.Repeat("x,", 2002), ",")[:2002]...), "", false, "", "parts"},
		{strings.TrimSuffix(form("model", "a"), "--\r\n"), "", false, "", "read form"},
		{"", "", false, "", "read form"},
		{`{"model":"a"}`, "", false, "", "read form"},
	} {
		a, err := e.Read(h, "", []byte(row.body))
		if row.want == "" {
			if err != nil || a.Model != row.model || a.Stream != row.stream {
				t.Errorf("%.200q: %+v, %v", row.body, a, err)
			}
			continue
		}
		var got *apierror.Error
		if !errors.As(err, &got) || got.Status != 400 || got.Code != row.code || !strings.Contains(got.Message, row.want) {
			t.Errorf("%.200q: %+v, %v; want %s", row.body, a, err, row.want)
		}
	}
	a, err := e.Read(h, "", []byte(file+form("model", "a", "n", "1")))
	if err != nil {
		t.Fatal(err)
	}
	_, renamed, err := a.Rename("c", "", []byte(file+form("model", "a", "n", "1")))
	if err != nil {
		t.Fatal(err)
	}
	r := multipart.NewReader(strings.NewReader(string(renamed)), "b")
	for _, want := range []string{"RIFF\x00\r\n--bb\r\n\xff", "c", "1"} {
		p, err := r.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(p); err != nil || string(text) != want {
			t.Errorf("%q, %v; want %q", text, err, want)
		}
	}
	q, _ := Find("GET", "/tokenizer_info")
	if a, err = q.Read(nil, "x=1&model=a%2Fb", nil); err != nil || a.Model != "a/b" {
		t.Errorf("%+v, %v", a, err)
	}
	if query, _, err := a.Rename("c", "x=1&model=a%2Fb", nil); err != nil || query != "model=c&x=1" {
		t.Errorf("%q, %v", query, err)
	}
	for _, query := range []string{"model=a&model=b", "model=%zz"} {
		if a, err := q.Read(nil, query, nil); err == nil {
			t.Errorf("%s: %+v", query, a)
		}
	}
}

// Only the type of the table is taken: any other may come from a page of a foreign site, or be read otherwise by the engine.
func TestCheck(t *testing.T) {
	body, _ := Find("POST", "/v1/completions")
	audio, _ := Find("POST", "/v1/audio/translations")
	query, _ := Find("GET", "/tokenizer_info")
	for _, row := range []struct {
		e      Endpoint
		given  []string
		status int
	}{
		{body, []string{"application/json"}, 0}, {body, []string{"Application/JSON; charset=utf-8"}, 0},
		{body, nil, 415}, {body, []string{""}, 415}, {body, []string{"text/plain"}, 415}, {body, []string{"text/plain; application/json"}, 415},
		{body, []string{"application/x-www-form-urlencoded"}, 415}, {body, []string{"multipart/form-data; boundary=b"}, 415},
		{body, []string{"application/json", "text/plain"}, 415}, {body, []string{"application/json,text/plain"}, 415}, {body, []string{"application/jsonx"}, 415},
		{audio, []string{"multipart/form-data; boundary=b"}, 0}, {audio, []string{"multipart/form-data"}, 400}, {audio, []string{"application/json"}, 415},
		{query, nil, 0},
	} {
		var got *apierror.Error
		switch err := row.e.Check(http.Header{"Content-Type": row.given}); {
		case row.status == 0 && err != nil, row.status > 0 && (!errors.As(err, &got) || got.Status != row.status):
			t.Errorf("%s with %q: %v, want %d", row.e.Path, row.given, err, row.status)
		}
	}
}

// Paths are found exactly.
func TestFind(t *testing.T) {
	for _, row := range []struct {
		method, path string
		form         apierror.Form
		ok           bool
	}{
		{"POST", "/v1/chat/completions", apierror.OpenAI, true}, {"POST", "/v1/messages", apierror.Anthropic, true}, {"POST", "/v1/responses", apierror.Responses, true},
		{"POST", "/v2/rerank", apierror.OpenAI, true}, {"GET", "/v1/completions", 0, false}, {"POST", "/v1/Completions", 0, false}, {"POST", "/v1/completions/", 0, false},
		{"POST", "/sleep", 0, false}, {"POST", "/v1/load_lora_adapter", 0, false},
	} {
		if e, ok := Find(row.method, row.path); ok != row.ok || e.Errors != row.form {
			t.Errorf("%s %s: %+v, %t", row.method, row.path, e, ok)
		}
	}
}
