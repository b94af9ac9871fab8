package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"medusa/serving/agent"
	"medusa/test/stubengine"
)

// The server's page shows the metrics of engines, by model and GPU. Prometheus can read the page even if an engine answers with bad
// text.
func TestMetricsOfEngines(t *testing.T) {
	const vllm = `# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model="inner"} 3.0
# TYPE vllm:ttft_seconds histogram
vllm:ttft_seconds_bucket{le="0.5"} 1
vllm:ttft_seconds_bucket{le="+Inf"} 2
vllm:ttft_seconds_sum 1.5
vllm:ttft_seconds_count 2
# TYPE go_goroutines gauge
go_goroutines 7
`
	says := []string{
		vllm,
		"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 5\n",
		"# TYPE vllm:num_requests_running counter\nvllm:num_requests_running 6\n",
		"",                        // it has no metrics
		"vllm:half 1\nvllm:hal{",  // the end is missing
		"\x00\xff garbage {{{ 1 ", // no metrics at all
		"# TYPE medusa_serve_waiting gauge\nmedusa_serve_waiting{model=\"m0\"} 99\n",
	}
	var file strings.Builder
	file.WriteString("gpus: ['0']\npolicy: {name: fcfs}\nmodels:\n")
	for i := range says {
		fmt.Fprintf(&file, "- {name: m%d, command: [engine, '{port}'], memory: 0.1}\n", i)
	}
	f := start(t, file.String(), func(fn int, s *stubengine.Stub) { s.Metrics = says[fn] })
	for i := range says {
		if _, err := stubengine.Ask(t.Context(), f.url, fmt.Sprint("m", i), "x", false); err != nil {
			t.Fatal(err)
		}
	}
	response, err := http.Get(f.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(string(text))); err != nil {
		t.Fatalf("the page cannot be read: %v\n%s", err, text)
	}
	for _, want := range []string{
		`vllm:num_requests_running{model="m0",gpu="0",engine="0",exported_model="inner"} 3`,
		`vllm:num_requests_running{model="m1",gpu="0"} 5`,
		`vllm:ttft_seconds_bucket{model="m0",gpu="0",le="0.5"} 1`,
		`vllm:ttft_seconds_count{model="m0",gpu="0"} 2`,
		`medusa_serve_engine_metrics{model="m0",gpu="0"} 1`,
		`medusa_serve_engine_metrics{model="m3",gpu="0"} 0`,
		`medusa_serve_engine_metrics{model="m4",gpu="0"} 0`,
		`medusa_serve_engine_metrics{model="m5",gpu="0"} 0`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}
	for _, not := range []string{"} 6\n", "go_goroutines{", "} 99\n", "vllm:half"} {
		if strings.Contains(string(text), not) {
			t.Errorf("%q is in\n%s", not, text)
		}
	}
}

// The metrics of an engine are its own, and its key goes to no other program.
func TestMetricsFollowNoRedirect(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, "a 1\n")
	}))
	defer other.Close()
	engine := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer engine.Close()
	if families, err := metricsOf(t.Context(), agent.Address{URL: engine.URL, Key: "key"}); err == nil || asked.Load() > 0 {
		t.Errorf("%v, %v, the other program was asked %d times", families, err, asked.Load())
	}
}
