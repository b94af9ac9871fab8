package extproc

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"

	"medusa/internal/apierror"
	"medusa/internal/apirequest"
	"medusa/internal/httplimit"
	"medusa/serving/dispatch"
	"medusa/serving/gateway"
	"medusa/serving/picker/settings"
)

// query is a request for a model.
type query struct {
	dispatch.Ask
	model  *settings.Model
	subset []string // addresses of endpoints; nil: all
	body   *httplimit.Body
	// trailers come after the body: the stream's last message is not the body's.
	trailers bool
	// unseen is true if the body of the answer does not pass the picker.
	unseen bool
	// reply is the beginning of the data plane's own answer, which came before the request was complete.
	reply *pb.ProcessingRequest
}

// refuse makes an error that the client caused.
func refuse(status int, code, param, format string, args ...any) error {
	return &apierror.Error{Status: status, Kind: apierror.Request, Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
}

// readTime bounds the time until a request is complete.
const readTime = 30 * time.Second

// read reads a whole request. It returns io.EOF if the stream ended before, and errReplied if the data plane has
// answered. The body is the caller's to release in each case.
func (s *Server) read(messages <-chan *pb.ProcessingRequest, q *query) error {
	late := time.NewTimer(readTime)
	defer late.Stop()
	var head http.Header // nil: not there yet
	for {
		select {
		case m, more := <-messages:
			if !more {
				return io.EOF
			}
			over, err := s.part(m, q, &head)
			if err != nil || over {
				return err
			}
		case <-late.C:
			return refuse(http.StatusRequestTimeout, "timeout", "", "the request was not complete within %v", readTime)
		}
	}
}

// part reads a part of a request, and reports whether it was the last.
func (s *Server) part(m *pb.ProcessingRequest, q *query, head *http.Header) (over bool, err error) {
	if c := m.GetProtocolConfig(); c != nil {
		if c.RequestBodyMode != filter.ProcessingMode_FULL_DUPLEX_STREAMED {
			return false, &apierror.Error{Status: http.StatusInternalServerError, Kind: apierror.Server, Code: "body_mode",
				Message: fmt.Sprintf("the data plane sends request bodies as %v; the picker needs FULL_DUPLEX_STREAMED", c.RequestBodyMode)}
		}
		q.unseen = c.ResponseBodyMode != filter.ProcessingMode_FULL_DUPLEX_STREAMED && c.ResponseBodyMode != filter.ProcessingMode_STREAMED
	}
	switch x := m.Request.(type) {
	case *pb.ProcessingRequest_RequestHeaders:
		*head = keep(x.RequestHeaders.GetHeaders().GetHeaders())
		if q.subset, err = subset(m); err != nil {
			return false, err
		}
		if over = x.RequestHeaders.EndOfStream; over {
			return false, s.bodiless(*head)
		}
		return false, known(*head)
	case *pb.ProcessingRequest_RequestBody:
		if err := q.body.Append(x.RequestBody.Body); err != nil {
			return false, tooMuch(err)
		}
		over = x.RequestBody.EndOfStream
	case *pb.ProcessingRequest_RequestTrailers:
		q.trailers, over = true, true
	case *pb.ProcessingRequest_ResponseHeaders:
		q.reply = m
		return false, errReplied
	default:
		return false, fmt.Errorf("read request: a message of type %T", m.Request)
	}
	if *head == nil {
		return false, errors.New("read request: a body without headers")
	}
	if over {
		err = s.understand(q, *head)
	}
	return over, err
}

// tooMuch is the error for a body that has no room.
func tooMuch(err error) error {
	var large *http.MaxBytesError
	var known *apierror.Error
	if errors.As(err, &known) {
		return err
	}
	if errors.As(err, &large) {
		return refuse(http.StatusRequestEntityTooLarge, "request_too_large", "", "the body has more than %d bytes", large.Limit)
	}
	return &apierror.Error{Status: http.StatusServiceUnavailable, Kind: apierror.Server, Code: "busy", Message: err.Error(), Retry: 1}
}

// keep copies the headers that the picker reads. The others would stay in memory for as long as the request waits.
func keep(headers []*core.HeaderValue) http.Header {
	head := http.Header{}
	for _, h := range headers {
		name := http.CanonicalHeaderKey(h.Key)
		if name != ":method" && name != ":path" && name != "Content-Type" && name != "Content-Encoding" && !gateway.IsWish(name) {
			continue
		}
		value := h.Value
		if len(h.RawValue) > 0 {
			value = string(h.RawValue)
		}
		head[name] = append(head[name], strings.Clone(value))
	}
	return head
}

// bodiless answers a request that has no body.
func (s *Server) bodiless(head http.Header) error {
	if path(head) == "/v1/models" && first(head, ":method") == http.MethodGet {
		return &listing{s.Settings.Models}
	}
	return unknown(head)
}

// known judges the head of a request before its body.
func known(head http.Header) error {
	e, ok := apirequest.Find(first(head, ":method"), path(head))
	if !ok {
		return unknown(head)
	}
	if err := e.Check(head); err != nil {
		return err
	}
	_, _, err := gateway.Wishes(head)
	return err
}

func unknown(head http.Header) error {
	return refuse(http.StatusNotFound, "unknown_url", "", "no endpoint %.20s %.200s", first(head, ":method"), path(head))
}

func path(head http.Header) string {
	p, _, _ := strings.Cut(first(head, ":path"), "?")
	return p
}

// first is Get for names that are no header names, such as ":path". http.Header does not change these.
func first(head http.Header, name string) string {
	if v := head[http.CanonicalHeaderKey(name)]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// understand finds the model, and the flow and the deadline that the client wants.
func (s *Server) understand(q *query, head http.Header) (err error) {
	e, _ := apirequest.Find(first(head, ":method"), path(head)) // known has found it
	body := s.Bodies.New(int64(s.Settings.MaxBody))             // decoded: the endpoint gets it as it came
	defer body.Release()
	coded, err := apirequest.Decode(head, q.body.Bytes(), body)
	if err != nil {
		return tooMuch(err)
	}
	if !coded {
		body = q.body
	}
	_, query, _ := strings.Cut(first(head, ":path"), "?")
	asked, err := e.Read(head, query, body.Bytes())
	if err != nil {
		return err
	}
	if asked.Model == "" {
		return refuse(http.StatusBadRequest, "", "model", "you must provide a model parameter")
	}
	fn, ok := s.Fleet.Function(asked.Model)
	if !ok {
		return refuse(http.StatusNotFound, "model_not_found", "model", "the model %.200q does not exist", asked.Model)
	}
	q.Fn, q.model = fn, &s.Settings.Models[fn]
	q.Flow, q.Deadline, err = gateway.Wishes(head)
	return err
}

// The place of the subset of endpoints in the metadata.
const (
	subsetSpace = "envoy.lb.subset_hint"
	subsetKey   = "x-gateway-destination-endpoint-subset"
)

// subset returns the endpoints that the data plane allows; nil if it gives no subset.
func subset(m *pb.ProcessingRequest) ([]string, error) {
	space := m.GetMetadataContext().GetFilterMetadata()[subsetSpace]
	value, ok := space.GetFields()[subsetKey]
	if !ok {
		return nil, nil
	}
	list := []string{}
	switch v := value.GetKind().(type) {
	case *structpb.Value_ListValue:
		for _, e := range v.ListValue.GetValues() {
			list = append(list, strings.TrimSpace(e.GetStringValue()))
		}
	case *structpb.Value_StringValue: // data planes send lists in this form, too
		for e := range strings.SplitSeq(v.StringValue, ",") {
			list = append(list, strings.TrimSpace(e))
		}
	default:
		return nil, &apierror.Error{Status: http.StatusServiceUnavailable, Kind: apierror.Server, Code: "no_endpoint",
			Message: "the subset of endpoints in the metadata is no list"}
	}
	return list, nil
}
