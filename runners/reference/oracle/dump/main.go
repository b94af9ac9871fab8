// Command dump prints the oracle's logits for a token sequence as JSON, for comparison with other implementations.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"medusa/runners/reference/oracle"
)

func main() {
	model := flag.String("model", "", "checkpoint directory")
	list := flag.String("tokens", "", "token ids, separated by commas")
	flag.Parse()
	if err := run(*model, *list); err != nil {
		fmt.Fprintln(os.Stderr, "dump:", err)
		os.Exit(1)
	}
}

func run(dir, list string) error {
	m, err := oracle.Load(dir)
	if err != nil {
		return err
	}
	var tokens []int
	for _, word := range strings.Split(list, ",") {
		t, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return fmt.Errorf("read tokens: %w", err)
		}
		tokens = append(tokens, t)
	}
	logits, err := m.Logits(tokens)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(struct {
		Tokens []int       `json:"tokens"`
		Logits [][]float64 `json:"logits"`
	}{tokens, logits})
}
