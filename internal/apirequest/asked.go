package apirequest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"

	"medusa/internal/apierror"
)

// Asked is what a request says of its model.
type Asked struct {
	Model  string // empty: none is named. vLLM then takes the one that it has
	Stream bool

	place    Place
	at, end  int    // of the model's value in a JSON body
	boundary string // of a form
}

// Read reads the model from a decoded body, or from the query.
func (e Endpoint) Read(header http.Header, query string, body []byte) (*Asked, error) {
	switch e.Model {
	case Query:
		values, err := url.ParseQuery(query)
		if err != nil {
			return nil, refuse("", "read query: %v", err)
		}
		if len(values["model"]) > 1 {
			return nil, twice("model")
		}
		return &Asked{Model: values.Get("model"), place: Query}, nil
	case Form:
		_, params, _ := mime.ParseMediaType(header.Get("Content-Type"))
		return readForm(params["boundary"], body)
	}
	return readObject(body)
}

// Check refuses a request by its headers: a body in an unknown encoding, or of another type than the endpoint has. Browsers do not send these types to a
// foreign server without asking it first.
func (e Endpoint) Check(header http.Header) error {
	if _, err := codingOf(header); err != nil {
		return err
	}
	want := "application/json"
	switch e.Model {
	case Query:
		return nil
	case Form:
		want = "multipart/form-data"
	case Body:
	}
	given := header.Values("Content-Type")
	kind, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	// mutant: types of bodies
	if len(given) != 1 || err != nil || kind != want {
		return &apierror.Error{Status: http.StatusUnsupportedMediaType, Kind: apierror.Request, Code: "unsupported_media_type", Param: "Content-Type",
			Message: fmt.Sprintf("%s takes a body of type %s (header Content-Type)", e.Path, want)}
	}
	if e.Model == Form && params["boundary"] == "" {
		return refuse("Content-Type", "the header Content-Type has no boundary")
	}
	return nil
}

// Rename returns the body and the query with another name of the model.
func (a *Asked) Rename(name string, query string, body []byte) (newQuery string, newBody []byte, err error) {
	switch a.place {
	case Query:
		values, err := url.ParseQuery(query)
		if err != nil {
			return "", nil, refuse("", "read query: %v", err)
		}
		values.Set("model", name)
		return values.Encode(), body, nil
	case Form:
		body, err = renameForm(a.boundary, name, body)
		return query, body, err
	case Body:
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return "", nil, err
	}
	return query, bytes.Join([][]byte{body[:a.at], quoted, body[a.end:]}, nil), nil
}

func refuse(param, format string, args ...any) error {
	return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Param: param, Message: fmt.Sprintf(format, args...)}
}

func twice(name string) error {
	return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Code: "duplicate_member", Param: name, Message: fmt.Sprintf("%q is there twice", name)}
}

// wrongType is the error of a model that is no text.
func wrongType(what string) error {
	return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Code: "invalid_type", Param: "model",
		Message: fmt.Sprintf("invalid type for 'model': a string is expected, not %s", what)}
}
