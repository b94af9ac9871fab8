// Package gateway is the server behind `medusa serve`: many models on the GPUs of one machine, behind one port with OpenAI's API.
//
// In: a [Spec], read from a YAML file, and requests. Out: the answers of engines, byte by byte, each engine started, woken, put to
// sleep and stopped as the policy decides (packages dispatch and agent); metrics; a log of decisions. Fails: a file with mistakes
// (an error with its position), a request that no engine can answer (OpenAI's error object), and engines: their requests fail with
// them. A request is tried once more if no byte of its answer was sent.
package gateway
