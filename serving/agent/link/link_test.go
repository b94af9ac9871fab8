package link

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
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
	with := func(i int, part string) string {
		changed := slices.Clone(parts)
		changed[i] = part
		return strings.Join(changed, ".")
	}
	for _, row := range []struct {
		name, ticket string
		secret       Secret
		at           time.Time
		ok           bool
	}{
		{"good", good, secret, now, true},
		{"at its end", good, secret, now.Add(time.Minute), true},
		{"too old", good, secret, now.Add(time.Minute + time.Second), false},
		{"of another secret", good, another, now, false},
		{"with another ID", with(0, "Yg"), secret, now, false},
		{"with another model", with(1, "cXdlbg"), secret, now, false},
		{"with another end", with(2, "1900000000"), secret, now, false},
		{"none", "", secret, now, false},
		{"not encoded", with(0, "?"), secret, now, false},
		{"no end", with(2, "x"), secret, now, false},
	} {
		id, model, err := row.secret.CheckTicket(row.ticket, row.at)
		var wrong *ProofError
		if row.ok && (err != nil || id != "a.7" || model != "llama") || !row.ok && !errors.As(err, &wrong) {
			t.Errorf("ticket %s: %q, %q, %v", row.name, id, model, err)
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
	own := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:9101"), netip.MustParseAddrPort("[fd00::1]:9101")}
	ask := secret.Ask(now, "10.0.0.1:9101")
	for _, good := range []string{ask, secret.Ask(now, "[fd00::1]:9101"), secret.Ask(now, "[::ffff:10.0.0.1]:9101")} {
		if err := secret.CheckAsk(good, now.Add(clockSkew), own); err != nil {
			t.Error(err)
		}
	}
	parts := strings.Split(secret.Ask(now, "10.0.0.9:9101"), ".")
	parts[2] = strings.Split(ask, ".")[2]
	for name, err := range map[string]error{
		"another secret":            another.CheckAsk(ask, now, own),
		"late":                      secret.CheckAsk(ask, now.Add(clockSkew+time.Second), own),
		"early":                     secret.CheckAsk(ask, now.Add(-clockSkew-time.Second), own),
		"none":                      secret.CheckAsk("", now, own),
		"for another address":       secret.CheckAsk(secret.Ask(now, "10.0.0.9:9101"), now, own),
		"for another port":          secret.CheckAsk(secret.Ask(now, "10.0.0.1:9102"), now, own),
		"for no address":            secret.CheckAsk(secret.Ask(now, "here"), now, own),
		"with another address":      secret.CheckAsk(strings.Join(parts, "."), now, own),
		"an agent without address":  secret.CheckAsk(ask, now, nil),
		"a seal of another report":  secret.CheckSeal(secret.Seal(ask, []byte("{}")), ask, []byte("[]")),
		"a seal of an older answer": secret.CheckSeal(secret.Seal(secret.Ask(now, "10.0.0.1:9101"), []byte("{}")), ask, []byte("{}")),
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
	if secret.Ask(now, "10.0.0.1:9101") == ask {
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
