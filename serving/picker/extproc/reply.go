package extproc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"medusa/internal/apierror"
	"medusa/serving/agent/link"
	"medusa/serving/picker/settings"
)

// The header and the metadata that name the endpoint.
const (
	destinationHeader = "x-gateway-destination-endpoint"
	destinationSpace  = "envoy.lb"
	servedKey         = "x-gateway-destination-endpoint-served"
)

// maxChunk is less than the largest part of a body that Envoy accepts.
const maxChunk = 62000

func header(name, value string) *core.HeaderValueOption {
	return &core.HeaderValueOption{Header: &core.HeaderValue{Key: name, RawValue: []byte(value)}, AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD}
}

// destined sends a request on to endpoints.
func destined(endpoints, ticket string) *pb.ProcessingResponse {
	return &pb.ProcessingResponse{
		Response: &pb.ProcessingResponse_RequestHeaders{RequestHeaders: &pb.HeadersResponse{Response: &pb.CommonResponse{ClearRouteCache: true,
			HeaderMutation: &pb.HeaderMutation{SetHeaders: []*core.HeaderValueOption{header(destinationHeader, endpoints), header(link.HeaderTicket, ticket)}}}}},
		DynamicMetadata: &structpb.Struct{Fields: map[string]*structpb.Value{destinationSpace: structpb.NewStructValue(
			&structpb.Struct{Fields: map[string]*structpb.Value{destinationHeader: structpb.NewStringValue(endpoints)}})}},
	}
}

// pieces splits a body into parts that the data plane accepts.
func pieces(body []byte, last bool) (list []*pb.CommonResponse) {
	for {
		n := min(len(body), maxChunk)
		end := n == len(body)
		list = append(list, &pb.CommonResponse{BodyMutation: &pb.BodyMutation{Mutation: &pb.BodyMutation_StreamedResponse{
			StreamedResponse: &pb.StreamedBodyResponse{Body: body[:n], EndOfStream: end && last}}}})
		if body = body[n:]; end {
			return list
		}
	}
}

// onward passes on the headers of an answer, without the header that is for the
// picker.
func onward() *pb.ProcessingResponse {
	return &pb.ProcessingResponse{Response: &pb.ProcessingResponse_ResponseHeaders{ResponseHeaders: &pb.HeadersResponse{Response: &pb.CommonResponse{
		HeaderMutation: &pb.HeaderMutation{RemoveHeaders: []string{link.HeaderHeld}}}}}}
}

// listing is the answer to a client that asks for the models.
type listing struct{ models []settings.Model }

func (l *listing) Error() string { return "a list of models" }

// immediate makes an answer of the picker itself.
func immediate(err error) (status int, r *pb.ProcessingResponse) {
	status = http.StatusOK
	headers := []*core.HeaderValueOption{header("content-type", "application/json")}
	var body any
	var list *listing
	if errors.As(err, &list) {
		body = list.body()
	} else {
		e := classify(err)
		status, body = e.Status, e.Body()
		if e.Retry > 0 {
			headers = append(headers, header("retry-after", strconv.Itoa(e.Retry)))
		}
	}
	data, _ := json.Marshal(body)
	return status, &pb.ProcessingResponse{Response: &pb.ProcessingResponse_ImmediateResponse{ImmediateResponse: &pb.ImmediateResponse{
		Status: &envoytype.HttpStatus{Code: envoytype.StatusCode(status)}, Headers: &pb.HeaderMutation{SetHeaders: headers}, Body: data}}}
}

func (l *listing) body() any {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		OwnedBy string `json:"owned_by"`
	}
	list := []model{}
	for _, m := range l.models {
		list = append(list, model{m.Name, "model", "medusa"})
	}
	return struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", list}
}

func classify(err error) *apierror.Error {
	var known *apierror.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.DeadlineExceeded):
		return &apierror.Error{Status: http.StatusGatewayTimeout, Kind: apierror.Server, Code: "timeout", Message: "no turn within the model's timeout"}
	}
	return &apierror.Error{Status: http.StatusInternalServerError, Kind: apierror.Server, Message: err.Error()}
}
