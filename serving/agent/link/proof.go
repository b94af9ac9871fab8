package link

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
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
	end := strconv.FormatInt(until.Unix(), 10)
	return strings.Join([]string{text.EncodeToString([]byte(id)), end, s.mac("ticket", id, model, end)}, ".")
}

// CheckTicket returns the ID of a ticket for a model.
func (s Secret) CheckTicket(ticket, model string, now time.Time) (id string, err error) {
	parts := strings.Split(ticket, ".")
	if len(parts) != 3 {
		return "", &ProofError{"no ticket of a picker"}
	}
	raw, err := text.DecodeString(parts[0])
	end, failed := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || failed != nil {
		return "", &ProofError{"no ticket of a picker"}
	}
	// mutant: tickets
	if !hmac.Equal([]byte(parts[2]), []byte(s.mac("ticket", string(raw), model, parts[1]))) {
		return "", &ProofError{"the ticket is of another secret or for another model"}
	}
	// mutant: old tickets
	if now.Unix() > end {
		return "", &ProofError{"the ticket is too old (are the clocks the same?)"}
	}
	return string(raw), nil
}

// Ask makes the proof of a request for a report. No two are equal.
func (s Secret) Ask(now time.Time) string {
	nonce, at := rand.Text(), strconv.FormatInt(now.Unix(), 10)
	return strings.Join([]string{nonce, at, s.mac("ask", nonce, at)}, ".")
}

// CheckAsk checks the proof of a request for a report.
func (s Secret) CheckAsk(proof string, now time.Time) error {
	parts := strings.Split(proof, ".")
	if len(parts) != 3 || !hmac.Equal([]byte(parts[2]), []byte(s.mac("ask", parts[0], parts[1]))) {
		return &ProofError{"no proof of a picker with the same secret"}
	}
	at, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || now.Sub(time.Unix(at, 0)).Abs() > clockSkew {
		return &ProofError{"the clocks are too far apart"}
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
