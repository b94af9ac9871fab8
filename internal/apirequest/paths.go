// Package apirequest reads requests of OpenAI's, Anthropic's and vLLM's APIs: which path they ask, for which model, and whether the answer is a stream.
//
// In: method, path, headers and body of a request. Out: an Asked, and the decoded body. Fails: with an *apierror.Error, in bounded memory and time.
package apirequest

import (
	"net/http"

	"medusa/internal/apierror"
)

// Place is where the name of a model stands.
type Place string

// The places.
const (
	Body  Place = "body"  // the member "model" of a JSON object
	Form  Place = "form"  // the field "model" of a multipart form
	Query Place = "query" // the parameter "model" of the URL
)

// Endpoint is a method and a path that engines answer.
type Endpoint struct {
	Method, Path string
	Model        Place
	Streams      bool          // the answer is a stream if the request wants one
	Errors       apierror.Form //
}

// The paths are those of OpenAI's API reference, of Anthropic's, and of the routers of vLLM 0.26.0 whose requests name a model.
var endpoints = []Endpoint{
	{http.MethodPost, "/v1/completions", Body, true, apierror.OpenAI},
	{http.MethodPost, "/v1/completions/render", Body, false, apierror.OpenAI},
	{http.MethodPost, "/v1/chat/completions", Body, true, apierror.OpenAI},
	{http.MethodPost, "/v1/chat/completions/batch", Body, false, apierror.OpenAI},
	{http.MethodPost, "/v1/chat/completions/render", Body, false, apierror.OpenAI},
	{http.MethodPost, "/v1/responses", Body, true, apierror.Responses},
	{http.MethodPost, "/v1/messages", Body, true, apierror.Anthropic},
	{http.MethodPost, "/v1/messages/count_tokens", Body, false, apierror.Anthropic},
	{http.MethodPost, "/v1/embeddings", Body, false, apierror.OpenAI},
	{http.MethodPost, "/v2/embed", Body, false, apierror.OpenAI},
	{http.MethodPost, "/pooling", Body, false, apierror.OpenAI},
	{http.MethodPost, "/classify", Body, false, apierror.OpenAI},
	{http.MethodPost, "/score", Body, false, apierror.OpenAI},
	{http.MethodPost, "/v1/score", Body, false, apierror.OpenAI},
	{http.MethodPost, "/rerank", Body, false, apierror.OpenAI},
	{http.MethodPost, "/v1/rerank", Body, false, apierror.OpenAI},
	{http.MethodPost, "/v2/rerank", Body, false, apierror.OpenAI},
	{http.MethodPost, "/generative_scoring", Body, false, apierror.OpenAI},
	{http.MethodPost, "/inference/v1/generate", Body, true, apierror.OpenAI},
	{http.MethodPost, "/tokenize", Body, false, apierror.OpenAI},
	{http.MethodPost, "/detokenize", Body, false, apierror.OpenAI},
	{http.MethodGet, "/tokenizer_info", Query, false, apierror.OpenAI},
	{http.MethodPost, "/v1/audio/transcriptions", Form, true, apierror.OpenAI},
	{http.MethodPost, "/v1/audio/translations", Form, true, apierror.OpenAI},
	{http.MethodPost, "/v1/audio/speech", Body, false, apierror.OpenAI},
	{http.MethodPost, "/v1/images/generations", Body, true, apierror.OpenAI},
	{http.MethodPost, "/v1/images/edits", Form, true, apierror.OpenAI},
	{http.MethodPost, "/v1/images/variations", Form, false, apierror.OpenAI},
}

// Endpoints lists all endpoints.
func Endpoints() []Endpoint { return endpoints }

var byPath = func() map[[2]string]Endpoint {
	index := map[[2]string]Endpoint{}
	for _, e := range endpoints {
		index[[2]string{e.Method, e.Path}] = e
	}
	return index
}()

// Find returns the endpoint of a method and a path.
func Find(method, path string) (Endpoint, bool) {
	e, ok := byPath[[2]string{method, path}]
	return e, ok
}
