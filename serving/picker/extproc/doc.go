// Package extproc speaks Envoy's external processing protocol as an endpoint picker of the Gateway API inference extension does.
//
// In: a gRPC stream for each HTTP request, with its headers, its body and the subset of endpoints that the data plane allows. Out: the
// endpoint that the policy has decided, as header and as dynamic metadata, or an immediate answer with an error of OpenAI's API. A request
// waits in the queue until then. If its stream ends, it leaves the queue. Bodies pass unchanged.
//
// Fails: a request that cannot be read (4xx), that has too many before it (429), or that no endpoint may serve (503). In each case only
// this request fails.
package extproc
