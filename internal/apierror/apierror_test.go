package apierror

import (
	"net/http/httptest"
	"testing"
)

// The form is that of OpenAI's documentation: all four fields are there, and those without a value are null.
func TestWrite(t *testing.T) {
	for _, row := range []struct {
		err         Error
		body, retry string
	}{
		{Error{Status: 404, Kind: Request, Code: "model_not_found", Param: "model", Message: `the model "x" does not exist`},
			`{"error":{"message":"the model \"x\" does not exist","type":"invalid_request_error","param":"model","code":"model_not_found"}}` + "\n", ""},
		{Error{Status: 429, Kind: RateLimit, Message: "later", Retry: 7},
			`{"error":{"message":"later","type":"rate_limit_error","param":null,"code":null}}` + "\n", "7"},
	} {
		w := httptest.NewRecorder()
		row.err.Write(w)
		if got := w.Result(); w.Body.String() != row.body || got.StatusCode != row.err.Status || got.Header.Get("Retry-After") != row.retry || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%+v: %d %v %s", row.err, got.StatusCode, got.Header, w.Body)
		}
	}
}
