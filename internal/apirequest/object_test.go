package apirequest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"medusa/internal/apierror"
)

// The statuses are those of OpenAI's API. What Python's json takes is taken: vLLM reads bodies with it.
func TestObject(t *testing.T) {
	for _, row := range []struct {
		body, model string
		stream      bool
	}{
		{`{"model":"a"}`, "a", false},
		{` { "stream" : true , "model" : "a" } `, "a", true},
		{`{"stream":false,"model":"a"}`, "a", false},
		{`{"mod\u0065l":"\u0061"}`, "a", false},
		{`{"model":"a","MODEL":"b","Model":"c","Stream":true}`, "a", false},
		{`{"Model":"a"}`, "", false},
		{`{"model":null}`, "", false},
		{`{}`, "", false},
		{"\xef\xbb\xbf" + `{"model":"a"}`, "a", false},
		{`{"model":"a","temperature":NaN,"x":[Infinity,-Infinity,-0.5e+3,1e999]}`, "a", false},
		{`{"x":{"model":"b","model":"c"},"model":"a"}`, "a", false},
		{`{"model":"A"}`, "A", false},
		{`{"model":"` + strings.Repeat("x", 5000) + `"}`, strings.Repeat("x", 5000), false},
	} {
		a, err := readObject([]byte(row.body))
		if err != nil || a.Model != row.model || a.Stream != row.stream {
			t.Errorf("%.80s: %+v, %v", row.body, a, err)
		}
	}
	deep := func(n int) string {
		return `{"model":"a","x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	if _, err := readObject([]byte(deep(800))); err != nil {
		t.Error(err)
	}
	for _, row := range []struct{ body, code, param, want string }{
		{``, "", "", "empty"}, {" \n", "", "", "empty"}, {`[]`, "", "", "no JSON object"}, {`"model"`, "", "", "no JSON object"}, {`null`, "", "", "no JSON object"},
		{`{"model":5}`, "invalid_type", "model", "a number"}, {`{"model":["a"]}`, "invalid_type", "model", "a list"}, {`{"model":{}}`, "invalid_type", "model", "an object"},
		{`{"model":true}`, "invalid_type", "model", "a truth value"}, {`{"model":NaN}`, "invalid_type", "model", "a number"},
		{`{"model":"a","model":"b"}`, "duplicate_member", "model", "twice"}, {`{"model":"a","mode\u006c":"a"}`, "duplicate_member", "model", "twice"},
		{`{"model":"a","stream":true,"stream":false}`, "duplicate_member", "stream", "twice"}, {`{"model":"a","n":1,"n":2}`, "duplicate_member", "n", "twice"},
		{deep(1000), "", "", "nested"}, {strings.Repeat("[", 1<<20), "", "", "nested"}, {`{"a":` + strings.Repeat(`{"a":`, 1<<18), "", "", "nested"},
		{`{"model":"a"`, "", "", "too early"}, {`{"model":"a`, "", "", "too early"}, {`{"model"`, "", "", "too early"}, {`{`, "", "", "too early"}, {`{"model":"\`, "", "", "too early"},
		{`{"model":"a"}x`, "", "", "follows"}, {`{"model":"a"}{"model":"b"}`, "", "", "follows"}, {`{"model":"a",}`, "", "", "name"}, {`{model:"a"}`, "", "", "name"}, {`{'model':'a'}`, "", "", "name"},
		{`{"model":'a'}`, "", "", "value"}, {`{"model" "a"}`, "", "", "colon"}, {`{"model":"a" "b":1}`, "", "", "comma"}, {"{\"model\":\"a\nb\"}", "", "", "control"},
		{`{"model":"\x61"}`, "", "", "escape"}, {`{"model":"\u00g1"}`, "", "", "hexadecimal"}, {`{"n":01}`, "", "", "comma"}, {`{"n":.5}`, "", "", "value"}, {`{"n":1.}`, "", "", "digit"},
		{`{"n":1e}`, "", "", "digit"}, {`{"n":-}`, "", "", "value"}, {`{"n":+1}`, "", "", "value"}, {`{"n":nul}`, "", "", "value"}, {"{\"model\":\"\xff\"}", "", "", "UTF-8"},
		{"{\x00}", "", "", "name"}, {"\xff\xfe{\x00}\x00", "", "", "UTF-8"},
	} {
		_, err := readObject([]byte(row.body))
		var got *apierror.Error
		if !errors.As(err, &got) || got.Status != 400 || got.Code != row.code || got.Param != row.param || !strings.Contains(got.Message, row.want) {
			t.Errorf("%.80s: %+v; want %q, %q, %q", row.body, err, row.code, row.param, row.want)
		}
	}
}

// A body of many members is refused before they take much memory.
func TestManyMembers(t *testing.T) {
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, ",\"%d\":0", i)
	}
	var got *apierror.Error
	if _, err := readObject([]byte(`{"model":"a"` + b.String() + "}")); !errors.As(err, &got) || got.Status != 400 || !strings.Contains(got.Message, "members") {
		t.Error(err)
	}
}

// Each body that is taken is JSON as Go's own reader has it, apart from what only Python takes. The value of "model" that is found can be replaced.
func FuzzObject(f *testing.F) {
	for _, body := range []string{`{"model":"a","stream":true}`, `{"mod\u0065l":"\ud83d\ude00","x":[1,-2.5e3,null,{"y":[]}]}`, `{"model":"a","t":NaN}`, "\xef\xbb\xbf{}", `[{}]`, `{"model":`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := readObject(body)
		plain := strings.TrimPrefix(string(body), "\xef\xbb\xbf")
		var members map[string]json.RawMessage
		valid := json.Unmarshal([]byte(plain), &members) == nil && members != nil
		if err != nil {
			var known *apierror.Error
			if !errors.As(err, &known) || known.Status != 400 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if !valid && !strings.Contains(plain, "NaN") && !strings.Contains(plain, "Infinity") {
			t.Fatalf("%q is taken, and is no JSON object", body)
		}
		if !valid {
			return
		}
		var model *string
		if raw, ok := members["model"]; ok && json.Unmarshal(raw, &model) == nil && model != nil && a.Model != *model || model == nil && a.Model != "" {
			t.Fatalf("%q: model %q, want %v", body, a.Model, members["model"])
		}
		if model == nil {
			return
		}
		_, renamed, err := a.Rename(`new "name"`, "", body)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := readObject(renamed); err != nil || again.Model != `new "name"` || again.Stream != a.Stream {
			t.Fatalf("%q renamed to %q: %+v, %v", body, renamed, again, err)
		}
	})
}
