package link

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	secret  = Secret(strings.Repeat("s", minSecret))
	another = Secret(strings.Repeat("t", minSecret))
	now     = time.Unix(1_800_000_000, 0)
)

func TestTicket(t *testing.T) {
	good := secret.Ticket("a.7", "llama", now.Add(time.Minute))
	parts := strings.Split(good, ".")
	for _, row := range []struct {
		name, ticket, model string
		secret              Secret
		at                  time.Time
		ok                  bool
	}{
		{"good", good, "llama", secret, now, true},
		{"at its end", good, "llama", secret, now.Add(time.Minute), true},
		{"too old", good, "llama", secret, now.Add(time.Minute + time.Second), false},
		{"of another model", good, "qwen", secret, now, false},
		{"of another secret", good, "llama", another, now, false},
		{"with another end", parts[0] + ".1900000000." + parts[2], "llama", secret, now, false},
		{"with another ID", "Yg." + parts[1] + "." + parts[2], "llama", secret, now, false},
		{"none", "", "llama", secret, now, false},
		{"not encoded", "?." + parts[1] + "." + parts[2], "llama", secret, now, false},
		{"no end", parts[0] + ".x." + parts[2], "llama", secret, now, false},
	} {
		id, err := row.secret.CheckTicket(row.ticket, row.model, row.at)
		var wrong *ProofError
		if row.ok && (err != nil || id != "a.7") || !row.ok && !errors.As(err, &wrong) {
			t.Errorf("ticket %s: %q, %v", row.name, id, err)
		}
	}
}

// An ID that contains the separator of the parts does not make
// another ticket.
func TestPartsAreApart(t *testing.T) {
	if secret.mac("ticket", "a", "bc") == secret.mac("ticket", "ab", "c") || secret.mac("x", "1:y") == secret.mac("x1", "y") {
		t.Error("two tuples have the same code")
	}
}

func TestReportsAreProven(t *testing.T) {
	ask := secret.Ask(now)
	if err := secret.CheckAsk(ask, now.Add(clockSkew)); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"another secret":            another.CheckAsk(ask, now),
		"late":                      secret.CheckAsk(ask, now.Add(clockSkew+time.Second)),
		"early":                     secret.CheckAsk(ask, now.Add(-clockSkew-time.Second)),
		"none":                      secret.CheckAsk("", now),
		"a seal of another report":  secret.CheckSeal(secret.Seal(ask, []byte("{}")), ask, []byte("[]")),
		"a seal of an older answer": secret.CheckSeal(secret.Seal(secret.Ask(now), []byte("{}")), ask, []byte("{}")),
		"a seal of another secret":  secret.CheckSeal(another.Seal(ask, []byte("{}")), ask, []byte("{}")),
	} {
		var wrong *ProofError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := secret.CheckSeal(secret.Seal(ask, []byte("{}")), ask, []byte("{}")); err != nil {
		t.Error(err)
	}
	if secret.Ask(now) == ask {
		t.Error("two requests have the same proof")
	}
}

func TestReadSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for _, row := range []struct {
		text string
		mode os.FileMode
		want string
	}{
		{strings.Repeat("x", minSecret) + "\n", 0o600, ""},
		{strings.Repeat("x", minSecret), 0o440, ""},
		{strings.Repeat("x", minSecret), 0o644, "all users may open it"},
		{strings.Repeat("x", minSecret-1) + " \n", 0o600, "31 bytes"},
	} {
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(row.text), row.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, row.mode); err != nil {
			t.Fatal(err)
		}
		s, err := ReadSecret(path)
		if row.want == "" && (err != nil || string(s) != strings.TrimSpace(row.text)) || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%v, mode %o: %v", row, row.mode, err)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.WriteFile(path, []byte(strings.Repeat("x", minSecret)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 54321, 54321); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSecret(path); err == nil || !strings.Contains(err.Error(), "user 54321 owns it") {
			t.Errorf("another user's: %v", err)
		}
	}
	if _, err := ReadSecret(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
