package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"medusa/restore/status"
	"medusa/test/memregistry"
)

// forgery is a way to get an artifact used that the policy's key has not signed.
type forgery struct {
	name string
	make func(ctx context.Context, f *counterfeit) ([]string, error) // returns the command that would use it
}

// counterfeit is the material of forgeries: a place whose policy requires the hub's key, and a mutant.
type counterfeit struct {
	*place
	hub  *hub
	tag  string
	file string // the mutant
	data []byte
	zoo  string
}

func (f *counterfeit) ref() string { return f.hub.host + "/" + f.tag + ":1" }

// push uploads the mutant as a user without a policy would.
func (f *counterfeit) push(ctx context.Context, more ...string) error {
	return f.must(ctx, append([]string{"push", f.file, f.ref()}, more...)...)
}

var forgeries = []forgery{
	{"a file", func(_ context.Context, f *counterfeit) ([]string, error) {
		return []string{"restore", f.file, "--", f.zoo}, nil
	}},
	{"the cache", func(ctx context.Context, f *counterfeit) ([]string, error) {
		return []string{"restore", memregistry.Digest(f.data), "--", f.zoo}, f.must(ctx, "cache", "add", f.file)
	}},
	{"the engine's choice", func(ctx context.Context, f *counterfeit) ([]string, error) {
		return []string{"restore", "--auto", "--", f.zoo}, f.must(ctx, "cache", "add", f.file)
	}},
	{"a registry, unsigned", func(ctx context.Context, f *counterfeit) ([]string, error) {
		return []string{"restore", f.ref(), "--", f.zoo}, errors.Join(f.push(ctx), f.must(ctx, "pull", f.ref()))
	}},
	{"a registry, signed by another key", func(ctx context.Context, f *counterfeit) ([]string, error) {
		key := filepath.Join(f.out, "other.key")
		return []string{"restore", f.ref(), "--", f.zoo}, errors.Join(f.must(ctx, "keygen", key), f.push(ctx, "--sign", key), f.must(ctx, "pull", f.ref()))
	}},
	{"a registry, with the signature of another artifact", func(ctx context.Context, f *counterfeit) ([]string, error) {
		return []string{"restore", f.ref(), "--", f.zoo}, errors.Join(f.push(ctx), f.stealSignature(), f.must(ctx, "pull", f.ref()))
	}},
	{"a registry, with the signature of another artifact, pulled with the key", func(ctx context.Context, f *counterfeit) ([]string, error) {
		return []string{"pull", f.ref(), "--verify", f.hub.key + ".pub"}, errors.Join(f.push(ctx), f.stealSignature())
	}},
	{"a file in the cache, in place of one that was verified", func(ctx context.Context, f *counterfeit) ([]string, error) {
		if err := f.must(ctx, "pull", f.hub.ref(), "--verify", f.hub.key+".pub"); err != nil {
			return nil, err
		}
		path := filepath.Join(f.cache, "artifacts", strings.TrimPrefix(f.hub.digest, "sha256:")+".medusa")
		return []string{"restore", f.hub.ref(), "--", f.zoo}, errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, f.data, 0o644))
	}},
	{"a file of a reference's name in the working directory", func(ctx context.Context, f *counterfeit) ([]string, error) {
		path := filepath.Join(f.out, f.hub.ref())
		return []string{"restore", f.hub.ref(), "--", f.zoo}, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, f.data, 0o644))
	}},
	{"medusa verify", func(_ context.Context, f *counterfeit) ([]string, error) { return []string{"verify", f.file}, nil }},
	{"medusa bake", func(_ context.Context, f *counterfeit) ([]string, error) {
		return []string{"bake", "--base", f.hub.host + "/base:1", "--artifact", f.file, "-t", f.hub.host + "/" + f.tag + ":baked"}, nil
	}},
}

// stealSignature stores the signature of the good artifact as one of the mutant.
func (f *counterfeit) stealSignature() error {
	subject := f.hub.Manifest(f.tag, "1")
	digest := memregistry.Digest(f.hub.Manifest("t", "1"))
	signatures := f.hub.Referring("t", digest)
	if len(signatures) == 0 {
		return errors.New("the good artifact has no signature")
	}
	var m map[string]any
	if err := json.Unmarshal(signatures[0], &m); err != nil {
		return err
	}
	s := m["subject"].(map[string]any)
	s["digest"], s["size"] = memregistry.Digest(subject), len(subject)
	stolen, err := json.Marshal(m)
	if err == nil {
		f.hub.PutManifest(f.tag, "", m["mediaType"].(string), stolen)
	}
	return err
}

// policy tries to get mutants used under a policy that requires a key's signature (MEDUSA_TRUST), and shows that an artifact with
// that signature is used there.
func policy(ctx context.Context, a *attacker) error {
	h, err := a.startHub(ctx, a.bases[0])
	if err != nil {
		return err
	}
	defer h.server.Close()
	h.putBase()
	file := filepath.Join(a.dir, "policy", "trust.yaml")
	text := fmt.Sprintf("mode: required\nkeys:\n- name: release\n  file: %s.pub\n", h.key)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		return err
	}
	trust := "MEDUSA_TRUST=" + file
	if err := a.signedIsUsed(ctx, h, trust); err != nil {
		return err
	}
	n := a.share(400, 1)
	counts := map[string]int{}
	for k := range n {
		for _, x := range forgeries {
			how, err := a.forge(ctx, h, x, trust, k*len(a.ranked)/n, fmt.Sprintf("forged-%d", k))
			if err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
			counts[how]++
		}
	}
	a.try(n * len(forgeries))
	a.line("forgeries under a policy", counts)
	return nil
}

func (a *attacker) signedIsUsed(ctx context.Context, h *hub, trust string) error {
	p, err := a.newPlace()
	if err != nil {
		return err
	}
	if err := p.must(ctx, "pull", h.ref(), "--verify", h.key+".pub"); err != nil {
		return err
	}
	report := filepath.Join(p.out, "status")
	e, err := p.run(ctx, []string{trust}, "medusa", "restore", "--status", report, h.ref(), "--", filepath.Join(a.build, "zoo"))
	if err != nil {
		return err
	}
	if st, _ := status.Read(report); st == nil || st.Status != status.Restored {
		a.found(unserved, "policy", "the signed artifact is not restored: %s", lastLine(e.stderr))
	}
	return p.close(a.tally, "policy")
}

// forge tries one forgery.
func (a *attacker) forge(ctx context.Context, h *hub, x forgery, trust string, ranked int, tag string) (string, error) {
	p, err := a.newPlace()
	if err != nil {
		return "", err
	}
	f := &counterfeit{place: p, hub: h, tag: tag, file: filepath.Join(p.out, "mutant.medusa"), zoo: filepath.Join(a.build, "zoo")}
	b, what := a.bases[1], "an artifact that nobody signed" // the registry has the first one, signed
	if f.data, err = os.ReadFile(b.path); err != nil {
		return "", err
	}
	if len(a.ranked) > 0 {
		if b, f.data, what, err = a.mutant(a.ranked[ranked], p.outside); err != nil {
			return "", err
		}
	}
	where := "forgery by " + x.name + " (" + what + ")"
	if err := os.WriteFile(f.file, f.data, 0o644); err != nil {
		return "", err
	}
	args, err := x.make(ctx, f)
	if err != nil { // it was refused before the policy was asked
		return "refused before use", p.close(a.tally, where)
	}
	report := filepath.Join(p.out, "status")
	if args[0] == "restore" {
		args = append([]string{"restore", "--status", report}, args[1:]...)
	}
	e, err := p.run(ctx, append([]string{trust}, b.env...), "medusa", args...)
	if err != nil {
		return "", err
	}
	how := "refused"
	if text := panicked(e.stderr); text != "" {
		a.found(panics, where, "%s", text)
	}
	st, _ := status.Read(report)
	used := args[0] != "restore" && e.code == 0 || st != nil && (st.Status == status.Restored || st.Status == status.Sticky)
	if used {
		a.found(accepted, where, "%s", strings.Join(args[:1], " "))
		how = broken
	} else if output, err := outputOf(e.stdout); args[0] == "restore" && (err != nil || output != b.output) {
		a.found(unserved, where, "exit %d: %s", e.code, lastLine(e.stderr))
		how = broken
	}
	return how, p.close(a.tally, where)
}
