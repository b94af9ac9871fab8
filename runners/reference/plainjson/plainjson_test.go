package plainjson_test

import (
	"strings"
	"testing"

	"medusa/runners/reference/plainjson"
)

func TestErrorsNameNoGoType(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{`{"size":"64"}`, "size: it is a string, expected a whole number"},
		{`{"size":64.5}`, "size: it is 64.5, expected a whole number"},
		{`{"size":99999999999999999999}`, "size: it is 99999999999999999999, expected a whole number"},
		{`{"share":[1]}`, "share: it is a list, expected a number"},
		{`{"tied":1}`, "tied: it is a number, expected true or false"},
		{`{"name":true}`, "name: it is true or false, expected a string"},
		{`{"list":{}}`, "list: it is an object, expected a list"},
		{`{"inner":{"size":""}}`, "inner.size: it is a string, expected a whole number"},
		{`{"inner":3}`, "inner: it is a number, expected an object"},
		{`[1]`, "it is a list, expected an object"},
		{`{"size":NaN}`, "no JSON at byte 9: invalid character 'N' looking for beginning of value"},
		{`{"size":`, "no JSON at byte 8: unexpected end of JSON input"},
	} {
		var v struct {
			Size  int     `json:"size"`
			Share float64 `json:"share"`
			Tied  bool    `json:"tied"`
			Name  string  `json:"name"`
			List  []int   `json:"list"`
			Inner struct {
				Size uint64 `json:"size"`
			} `json:"inner"`
		}
		err := plainjson.Unmarshal([]byte(row.text), &v)
		if err == nil || err.Error() != row.want || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %s", row.text, err, row.want)
		}
	}
}
