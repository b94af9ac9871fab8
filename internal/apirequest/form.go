package apirequest

import (
	"bytes"
	"io"
	"mime/multipart"
)

// The bounds of a form: a field that this package reads has at most maxField bytes, and a form at most maxParts parts.
const (
	maxField = 4 << 10
	maxParts = 1000
)

// readForm reads the fields "model" and "stream".
func readForm(boundary string, body []byte) (*Asked, error) {
	a := &Asked{place: Form, boundary: boundary}
	seen := map[string]bool{}
	err := parts(boundary, body, func(p *multipart.Part) error {
		name := p.FormName()
		if name != "model" && name != "stream" {
			return nil
		}
		if seen[name] {
			return twice(name)
		}
		seen[name] = true
		value, err := io.ReadAll(io.LimitReader(p, maxField+1))
		if err != nil {
			return err
		}
		if len(value) > maxField {
			return refuse(name, "the field %q has more than %d bytes", name, maxField)
		}
		if name == "model" {
			a.Model = string(value)
		} else {
			a.Stream = string(value) == "true"
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// parts calls each for all parts of a form.
func parts(boundary string, body []byte, each func(*multipart.Part) error) error {
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for n := 0; ; n++ {
		p, err := r.NextRawPart()
		if err == io.EOF { // not wrapped: a form without an end wraps it
			return nil
		}
		if n == maxParts {
			return refuse("", "the form has more than %d parts", maxParts)
		}
		if err != nil {
			return refuse("", "read form: %v", err)
		}
		if err := each(p); err != nil {
			return err
		}
	}
}

// renameForm copies a form with another value of the field "model".
func renameForm(boundary, name string, body []byte) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(len(body) + len(name))
	w := multipart.NewWriter(&out)
	if err := w.SetBoundary(boundary); err != nil {
		return nil, err
	}
	err := parts(boundary, body, func(p *multipart.Part) error {
		to, err := w.CreatePart(p.Header)
		if err != nil {
			return err
		}
		if p.FormName() == "model" {
			_, err = io.WriteString(to, name)
		} else {
			_, err = io.Copy(to, p)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
