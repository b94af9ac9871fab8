// Package settings reads the files of medusa-picker.
//
// In: a file with the policy and the models, and one with the endpoints. Out: a [Settings], a list of addresses. Fails: a file with
// mistakes (an error with its position).
package settings

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"medusa/internal/yamlfile"
	"medusa/serving/gateway"
	"medusa/serving/schedule"
)

// Settings are the settings of a picker. Times are in seconds.
type Settings struct {
	Listen       string         `yaml:"listen"` // for Envoy: a Unix socket (unix:PATH), or an address, which needs TLS; default unix:picker.sock
	TLS          *TLS           `yaml:"tls"`
	Admin        string         `yaml:"admin"`  // metrics; default 127.0.0.1:9003
	Secret       string         `yaml:"secret"` // file; the agents have the same
	Policy       gateway.Policy `yaml:"policy"`
	MaxWaiting   int            `yaml:"max_waiting"`   // requests of a model; default 256
	MaxBody      int            `yaml:"max_body"`      // bytes; default 4 MiB
	MaxEndpoints int            `yaml:"max_endpoints"` // default 256
	Fallbacks    int            `yaml:"fallbacks"`     // endpoints named beside the one that was picked
	Gone         float64        `yaml:"gone"`          // time without a report after which an endpoint is not used; default 5
	Models       []Model        `yaml:"models"`
}

// Model is a model that clients may ask for.
type Model struct {
	Name     string  `yaml:"name"`
	Weight   float64 `yaml:"weight"`   // default 1
	Deadline float64 `yaml:"deadline"` // of an answer, for torpor
	Timeout  float64 `yaml:"timeout"`  // of waiting; default 600
}

// UnmarshalYAML sets the defaults of a model before it is read.
func (m *Model) UnmarshalYAML(read func(any) error) error {
	type plain Model // without this method
	*m = Model{Weight: 1, Timeout: 600}
	return read((*plain)(m))
}

// Load reads settings. Paths in it are relative to its folder.
func Load(path string) (*Settings, error) {
	data, err := yamlfile.Read(path)
	if err != nil {
		return nil, err
	}
	s := &Settings{Listen: socket + "picker.sock", Admin: "127.0.0.1:9003", MaxWaiting: 256, MaxBody: 4 << 20, MaxEndpoints: 256, Gone: 5,
		Policy: gateway.Policy{Name: "mqfq"}}
	file, err := yamlfile.Decode(path, data, s)
	if err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, yamlfile.Locate(path, file, err)
	}
	beside := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(filepath.Dir(path), p)
	}
	s.Secret = beside(s.Secret)
	if at, ok := s.Socket(); ok {
		s.Listen = socket + beside(at)
	}
	if t := s.TLS; t != nil {
		t.Certificate, t.Key, t.Clients = beside(t.Certificate), beside(t.Key), beside(t.Clients)
	}
	return s, nil
}

// socket begins an address that is a Unix socket.
const socket = "unix:"

// Socket returns the path of the Unix socket for Envoy, if the port is one.
func (s *Settings) Socket() (path string, ok bool) { return strings.CutPrefix(s.Listen, socket) }

func mistake(path, format string, args ...any) error {
	return &yamlfile.FieldError{Path: path, Err: fmt.Errorf("check settings: "+format, args...)}
}

// The largest times and the largest number of endpoints. More would overflow durations, and the log of decisions.
const (
	maxSeconds   = 1e8
	maxEndpoints = 1 << 12
)

func (s *Settings) check() error {
	if err := s.checkPorts(); err != nil {
		return err
	}
	switch {
	case s.Secret == "":
		return mistake("$", "secret is missing: agents answer only those who know it")
	case s.MaxWaiting < 1:
		return mistake("$.max_waiting", "must be positive")
	case s.MaxBody < 1:
		return mistake("$.max_body", "must be positive")
	case s.MaxEndpoints < 1 || s.MaxEndpoints > maxEndpoints:
		return mistake("$.max_endpoints", "is from 1 to %d", maxEndpoints)
	case s.Fallbacks < 0:
		return mistake("$.fallbacks", "must not be negative")
	case !(s.Gone > 0 && s.Gone <= maxSeconds):
		return mistake("$.gone", "is a time above 0")
	case len(s.Models) == 0:
		return mistake("$.models", "no model")
	}
	for i, m := range s.Models {
		at := fmt.Sprintf("$.models[%d]", i)
		switch {
		case m.Name == "":
			return mistake(at, "a model needs a name")
		case slices.ContainsFunc(s.Models[:i], func(other Model) bool { return other.Name == m.Name }):
			return mistake(at+".name", "%s is there twice", m.Name)
		case !(m.Timeout > 0 && m.Timeout <= maxSeconds):
			return mistake(at+".timeout", "is a time above 0")
		case strings.HasPrefix(s.Policy.Name, "torpor") && m.Deadline == 0:
			return mistake(at, "model %s needs a deadline, for policy %s", m.Name, s.Policy.Name)
		case !(m.Deadline >= 0 && m.Deadline <= maxSeconds):
			return mistake(at+".deadline", "is a time")
		}
	}
	if _, err := schedule.New(s.Policy.Name, s.Params()); err != nil {
		return &yamlfile.FieldError{Path: "$.policy", Err: err}
	}
	return nil
}

func (s *Settings) checkPorts() error {
	address := func(field, value string) error {
		if _, _, err := net.SplitHostPort(value); err != nil {
			return mistake(field, "%q is no address with a port", value)
		}
		return nil
	}
	if err := address("$.admin", s.Admin); err != nil {
		return err
	}
	if path, ok := s.Socket(); ok {
		switch {
		case path == "":
			return mistake("$.listen", "the Unix socket has no path")
		case s.TLS != nil:
			return mistake("$.tls", "a Unix socket has no TLS")
		}
		return nil
	}
	if err := address("$.listen", s.Listen); err != nil {
		return err
	}
	switch t := s.TLS; {
	case t == nil:
		return mistake("$.listen", "whoever reaches %s gets tickets: use a Unix socket (unix:PATH), or set tls", s.Listen)
	case t.Certificate == "" || t.Key == "" || t.Clients == "":
		return mistake("$.tls", "certificate, key and clients are needed")
	}
	return nil
}

// Params returns the parameters of the policy.
func (s *Settings) Params() schedule.Params {
	p := schedule.Params{Functions: len(s.Models), D: s.Policy.D, T: s.Policy.T, Alpha: s.Policy.Alpha, Limit: s.Policy.UtilizationLimit,
		WarmFirst: s.Policy.WarmFirst, O3Limit: s.Policy.O3Limit}
	for _, m := range s.Models {
		p.Weights = append(p.Weights, m.Weight)
		if m.Deadline > 0 {
			p.Deadline = append(p.Deadline, m.Deadline)
		} else {
			p.Deadline = append(p.Deadline, m.Timeout)
		}
	}
	return p
}

// Endpoints reads the file of endpoints: a list of addresses.
func Endpoints(path string) ([]string, error) {
	data, err := yamlfile.Read(path)
	if err != nil {
		return nil, err
	}
	var f struct {
		Endpoints []string `yaml:"endpoints"`
	}
	file, err := yamlfile.Decode(path, data, &f)
	if err != nil {
		return nil, err
	}
	for i, e := range f.Endpoints {
		at := fmt.Sprintf("$.endpoints[%d]", i)
		// Envoy takes addresses, not names.
		if a, err := netip.ParseAddrPort(e); err != nil || a.String() != e {
			return nil, yamlfile.Locate(path, file, mistake(at, "%q is not an IP address with a port", e))
		}
		if slices.Contains(f.Endpoints[:i], e) {
			return nil, yamlfile.Locate(path, file, mistake(at, "%s is there twice", e))
		}
	}
	return f.Endpoints, nil
}
