// Package yamlfile reads YAML that people write, with the position of each error. It is the only importer of the YAML library's parser.
//
// In: a file. Out: values of the caller's types. Fails: if a file is malformed, has fields that the types lack
// ([Error]), or has a field that the caller refuses ([FieldError], [Locate]).
package yamlfile

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Error is an error in an input file. Line and Column count from 1.
type Error struct {
	File   string
	Line   int
	Column int
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FieldError is an error at a path of a YAML file; [Locate] turns the path into a position.
type FieldError struct {
	Path string
	Err  error
}

func (e *FieldError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// maxBytes bounds the files.
const maxBytes = 1 << 20

var (
	errLong  = fmt.Errorf("it has too many values (at most %d keys, values and signs)", maxTokens)
	errDeep  = errors.New("read YAML: it nests too deeply")
	errLarge = errors.New("aliases stand for too many values, or for themselves")
)

// Read reads a file that people write by hand.
func Read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if info.Size() > maxBytes {
		return nil, fmt.Errorf("read %s: %d bytes (at most %d)", path, info.Size(), maxBytes)
	}
	return os.ReadFile(path)
}

// Decode reads YAML into v and refuses fields that v does not have.
func Decode(name string, data []byte, v any) (*ast.File, error) {
	var file *ast.File
	err := Guard(func() error {
		if len(data) > maxBytes {
			return fmt.Errorf("%d bytes (at most %d)", len(data), maxBytes)
		}
		err := shallow(string(data))
		if err != nil {
			return err
		}
		if file, err = parser.ParseBytes(data, 0); err != nil {
			return err
		}
		if len(file.Docs) != 1 || file.Docs[0].Body == nil {
			return errors.New("needs one document")
		}
		body := file.Docs[0].Body
		// mutant: size of what aliases stand for
		if newExact(body).expanded(body) > maxNodes {
			return errLarge
		}
		return DecodeNode(body, v)
	})
	if err == nil {
		return file, nil
	}
	if at, ok := TokenError(name, err); ok {
		return nil, at
	}
	return nil, &Error{File: name, Line: 1, Column: 1, Err: fmt.Errorf("read YAML: %w", err)}
}

// DecodeNode reads a part of a decoded file into v, as Decode reads all of it. TokenError gives its errors the file's name.
func DecodeNode(n ast.Node, v any) error {
	return Guard(func() error {
		if err := yaml.NodeToValue(n, v, yaml.Strict()); err != nil {
			return err
		}
		return newExact(n).check(n, reflect.TypeOf(v))
	})
}

// TokenError converts an error with a position in a file whose name it lacks.
func TokenError(name string, err error) (*Error, bool) {
	var unnamed *Error
	if errors.As(err, &unnamed) && unnamed.File == "" {
		unnamed.File = name
		return unnamed, true
	}
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil || at.GetToken().Position == nil {
		return nil, false
	}
	p := at.GetToken().Position
	return &Error{File: name, Line: max(p.Line, 1), Column: max(p.Column, 1), Err: fmt.Errorf("read YAML: %s", message(at))}, true
}

// message says which kind of value a field needs, in place of the library's message with Go's types.
func message(err yaml.Error) string {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) || wrong.DstType == nil {
		return err.GetMessage()
	}
	kind := wrong.DstType.Kind()
	if kind == reflect.Pointer {
		kind = wrong.DstType.Elem().Kind()
	}
	needs := "another kind of value"
	switch {
	case kind == reflect.Bool:
		needs = "true or false"
	case kind == reflect.Float32 || kind == reflect.Float64:
		needs = "a number"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		needs = "a whole number"
	case kind == reflect.String:
		needs = "a text"
	case kind == reflect.Slice || kind == reflect.Array:
		needs = "a list"
	case kind == reflect.Map || kind == reflect.Struct:
		needs = "fields with values"
	}
	return "the field needs " + needs
}

// Guard turns a panic of the YAML library on hostile input into an error.
func Guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed input (%v)", r)
		}
	}()
	return f()
}

// Locate gives a FieldError its position: that of the field, or of the nearest enclosing one that the file has.
func Locate(name string, file *ast.File, err error) error {
	var fault *Error
	var field *FieldError
	if errors.As(err, &fault) || !errors.As(err, &field) {
		return err
	}
	e := &Error{File: name, Line: 1, Column: 1, Err: field.Err}
	for path := field.Path; path != ""; {
		if line, column, ok := position(file, path); ok {
			e.Line, e.Column = line, column
			break
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut <= 0 {
			break
		}
		path = path[:cut]
	}
	return e
}

func position(file *ast.File, path string) (line, column int, ok bool) {
	err := Guard(func() error {
		p, err := yaml.PathString(path)
		if err != nil {
			return err
		}
		node, err := p.FilterFile(file)
		if err != nil {
			return err
		}
		at := node.GetToken().Position
		line, column = at.Line, at.Column
		return nil
	})
	return line, column, err == nil && line > 0
}
