// Package link is the protocol between an agent and an endpoint picker.
//
// In and out: a [Report] of a GPU as JSON, and proofs that both sides know the same secret: a ticket for each request that the picker sends
// to an agent, and a seal for each report. The secret itself is never sent. Fails: a secret that is too short or that others can read
// ([ReadSecret]), a ticket or seal that was made with another secret, for another purpose, or too long ago ([ProofError]).
package link
