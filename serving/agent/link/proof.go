package link

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"medusa/internal/private"
)

// Secret is known only to a picker and its agents.
type Secret []byte

// minSecret is the least length of a secret in bytes.
const minSecret = 32

// ReadSecret reads a secret from a file that no other user can read or write. White space around it is ignored.
func ReadSecret(path string) (Secret, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	// A group may read it: Kubernetes gives secrets to processes that are not root in this way.
	if info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("read secret %s: all users may open it (chmod 600 %s)", path, path)
	}
	// mutant: secrets of others
	if err := private.Check(path); err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	s := Secret(bytes.TrimSpace(data))
	// mutant: short secrets
	if len(s) < minSecret {
		return nil, fmt.Errorf("read secret %s: %d bytes, at least %d are needed (head -c 32 /dev/urandom | base64)", path, len(s), minSecret)
	}
	return s, nil
}

// ProofError is a proof that is not valid.
type ProofError struct{ Cause string }

func (e *ProofError) Error() string { return "check proof: " + e.Cause }

// clockSkew is the largest allowed difference between the clocks of the two.
const clockSkew = 5 * time.Minute

var text = base64.RawURLEncoding

// mac is the code of a purpose and parts. Each part has its length in front, so two lists of parts never
// have the same code.
func (s Secret) mac(purpose string, parts ...string) string {
	h := hmac.New(sha256.New, s)
	for _, p := range append([]string{purpose}, parts...) {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return text.EncodeToString(h.Sum(nil))
}

// Ticket makes an agent accept a request for a model until a moment.
func (s Secret) Ticket(id, model string, until time.Time) string {
	parts := []string{text.EncodeToString([]byte(id)), text.EncodeToString([]byte(model)), strconv.FormatInt(until.Unix(), 10)}
	return strings.Join(append(parts, s.mac("ticket", parts...)), ".")
}

// CheckTicket returns the ID of a ticket, and its model. So a request is judged before its body is read.
func (s Secret) CheckTicket(ticket string, now time.Time) (id, model string, err error) {
	parts := strings.Split(ticket, ".")
	if len(parts) != 4 {
		return "", "", &ProofError{"no ticket of a picker"}
	}
	// mutant: tickets
	if !hmac.Equal([]byte(parts[3]), []byte(s.mac("ticket", parts[:3]...))) {
		return "", "", &ProofError{"the ticket is of another secret"}
	}
	rawID, errID := text.DecodeString(parts[0])
	rawModel, errModel := text.DecodeString(parts[1])
	end, errEnd := strconv.ParseInt(parts[2], 10, 64)
	if err := errors.Join(errID, errModel, errEnd); err != nil {
		return "", "", &ProofError{err.Error()}
	}
	// mutant: old tickets
	if now.Unix() > end {
		return "", "", &ProofError{"the ticket is too old (are the clocks the same?)"}
	}
	return string(rawID), string(rawModel), nil
}

// Ask makes the proof of a request for a report from the agent at an address. No two are equal.
func (s Secret) Ask(now time.Time, address string) string {
	nonce, at, to := rand.Text(), strconv.FormatInt(now.Unix(), 10), text.EncodeToString([]byte(address))
	return strings.Join([]string{nonce, at, to, s.mac("ask", nonce, at, to)}, ".")
}

// CheckAsk checks the proof of a request for a report. It must be for one of the agent's own addresses. Otherwise a program at another
// address has passed it on, and the report would make that program an endpoint.
func (s Secret) CheckAsk(proof string, now time.Time, own []netip.AddrPort) error {
	parts := strings.Split(proof, ".")
	if len(parts) != 4 || !hmac.Equal([]byte(parts[3]), []byte(s.mac("ask", parts[0], parts[1], parts[2]))) {
		return &ProofError{"no proof of a picker with the same secret"}
	}
	at, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || now.Sub(time.Unix(at, 0)).Abs() > clockSkew {
		return &ProofError{"the clocks are too far apart"}
	}
	raw, _ := text.DecodeString(parts[2])
	to, err := netip.ParseAddrPort(string(raw))
	// mutant: addresses that were asked
	if err != nil || !slices.Contains(own, netip.AddrPortFrom(to.Addr().Unmap(), to.Port())) {
		return &ProofError{fmt.Sprintf("the picker asks %s, this agent is at %v (agent.advertise sets it)", raw, own)}
	}
	return nil
}

// Seal makes the proof of a report that answers a request with a proof.
func (s Secret) Seal(asked string, report []byte) string {
	return s.mac("report", asked, string(report))
}

// CheckSeal checks the proof of a report.
func (s Secret) CheckSeal(seal, asked string, report []byte) error {
	// mutant: sealed reports
	if !hmac.Equal([]byte(seal), []byte(s.Seal(asked, report))) {
		return &ProofError{"the report is not of an agent with the same secret"}
	}
	return nil
}
