package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"medusa/test/stubengine"
)

// The aims of the overhead.
const (
	pairs    = 2000
	atOnce   = 32
	loadTime = 5 * time.Second
)

// overhead asks an engine that is awake directly and through the server, by turns, and then as often as possible.
func (r *run) overhead() (result string, err error) {
	direct, err := r.start(filepath.Join(r.build, "stub-engine"), "--listen", "127.0.0.1:0", "--model", "stub")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, direct.kill()) }()
	config := filepath.Join(r.work, "overhead.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\ngpus: ['0']\npolicy: {name: mqfq, d: %d}\nmodels:\n- {name: stub, slots: %d, command: [%q, --listen, '127.0.0.1:{port}', --model, stub]}\n",
		2*atOnce, 2*atOnce, filepath.Join(r.build, "stub-engine"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", err
	}
	through, err := r.start(filepath.Join(r.build, "medusa"), "serve", config)
	if err != nil {
		return "", err
	}
	var added []float64
	took := func(url string) (time.Duration, error) {
		ctx, cancel := within()
		defer cancel()
		began := time.Now()
		_, err := stubengine.Ask(ctx, url, "stub", "x", false)
		return time.Since(began), err
	}
	for i := range pairs {
		a, errA := took(direct.url)
		b, errB := took(through.url)
		if err := errors.Join(errA, errB); err != nil {
			return "", err
		}
		if i >= pairs/10 { // connections are warm
			added = append(added, (b-a).Seconds()*1000)
		}
	}
	slices.Sort(added)
	began, answers := time.Now(), make([]int, atOnce)
	each(atOnce, atOnce, func(i int) {
		for time.Since(began) < loadTime {
			if _, err := took(through.url); err != nil {
				return
			}
			answers[i]++
		}
	})
	total := 0
	for _, n := range answers {
		total += n
	}
	rate := float64(total) / time.Since(began).Seconds()
	if err := through.stop(); err != nil {
		return "", err
	}
	return fmt.Sprintf("added-ms-median=%.2f added-ms-p99=%.2f requests-per-second=%.0f", added[len(added)/2], added[len(added)*99/100], rate), nil
}
