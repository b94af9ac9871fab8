package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"medusa/serving/agent"
)

// The time limit for an engine's metrics, and the largest size that is read.
const (
	scrapeLimit = time.Second
	scrapeBytes = 4 << 20
)

// scraped are the metrics of one engine. families is nil if the engine gave none.
type scraped struct {
	model, gpu string
	families   map[string]*dto.MetricFamily
}

// scrape asks all engines at once for their own metrics, as vLLM has them. If an engine has none, or answers late or with other text, the metrics of
// the others are not affected.
func (g *Server) scrape(ctx context.Context) []scraped {
	ctx, cancel := context.WithTimeout(ctx, scrapeLimit)
	defer cancel()
	g.mu.Lock()
	now, engines := g.setup.Load(), g.agent.Endpoints()
	g.mu.Unlock()
	list := make([]scraped, len(engines))
	var all sync.WaitGroup
	for i, e := range engines {
		list[i] = scraped{model: now.models[e.Fn].Name, gpu: now.gpus[e.GPU]}
		all.Go(func() { list[i].families, _ = metricsOf(ctx, e.Address) })
	}
	all.Wait()
	return list
}

func metricsOf(ctx context.Context, at agent.Address) (map[string]*dto.MetricFamily, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	r.Close = true // rare: no connection is worth keeping
	if at.Key != "" {
		r.Header.Set("Authorization", "Bearer "+at.Key)
	}
	response, err := http.DefaultTransport.RoundTrip(r) // as agent.Process: no redirects
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /metrics: status %s", response.Status)
	}
	// If the text is longer, its last line is cut off. The parser refuses that.
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(response.Body, scrapeBytes))
	// mutant: metrics that end within a line
	if err != nil {
		return nil, err
	}
	return families, nil
}

// merge writes the engines' families, each once, with the model and the GPU as the first labels. It leaves out a family that ours knows already, or
// whose type differs from the first engine's: a page of metrics has each name once.
func merge(out io.Writer, list []scraped, ours func(name string) bool) {
	merged := map[string]*dto.MetricFamily{}
	for _, s := range list {
		for name, family := range s.families {
			// mutant: metrics of engines under our own names
			if ours(name) {
				continue
			}
			if merged[name] == nil {
				merged[name] = &dto.MetricFamily{Name: family.Name, Help: family.Help, Type: family.Type}
			}
			if merged[name].GetType() != family.GetType() {
				continue
			}
			for _, m := range family.Metric {
				m.Label = withPlace(m.Label, s)
				merged[name].Metric = append(merged[name].Metric, m)
			}
		}
	}
	for _, family := range sorted(merged) {
		_, _ = expfmt.MetricFamilyToText(out, family)
	}
}

func sorted(families map[string]*dto.MetricFamily) (list []*dto.MetricFamily) {
	for _, f := range families {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list
}

// withPlace puts model and GPU before the engine's own labels. An own label with one of these names becomes exported_NAME, as in Prometheus.
func withPlace(own []*dto.LabelPair, s scraped) []*dto.LabelPair {
	pair := func(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }
	labels := []*dto.LabelPair{pair("model", s.model), pair("gpu", s.gpu)}
	for _, l := range own {
		name := l.GetName()
		for slices.ContainsFunc(labels, func(other *dto.LabelPair) bool { return other.GetName() == name }) {
			name = "exported_" + name
		}
		labels = append(labels, pair(name, l.GetValue()))
	}
	return labels
}
