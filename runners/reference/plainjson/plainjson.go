// Package plainjson decodes JSON as encoding/json does, with errors in the words of JSON and not of Go: the file's author never
// saw the types that it is decoded into.
//
// In: the text and the Go value to fill. Out: an error that says which value is wrong, and how.
package plainjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Unmarshal is json.Unmarshal.
func Unmarshal(data []byte, v any) error { return Explain(json.Unmarshal(data, v)) }

// Explain puts an error of encoding/json into plain words and leaves any other as it is.
func Explain(err error) error {
	var mistyped *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &mistyped):
		text := fmt.Sprintf("it is %s, expected %s", given(mistyped.Value), wanted(mistyped.Type))
		if mistyped.Field != "" {
			text = mistyped.Field + ": " + text
		}
		return errors.New(text)
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON at byte %d: %w", syntax.Offset, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("no JSON: it ends too early")
	}
	return err
}

// given describes a value by encoding/json's name for it: "string", "number 1.5", "object".
func given(value string) string {
	switch value {
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	if number, ok := strings.CutPrefix(value, "number "); ok {
		return number
	}
	return "a " + value
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}
