// Package safetensors reads the weights of a Hugging Face checkpoint directory: model.safetensors, or the shards that
// model.safetensors.index.json lists.
//
// In: the directory. Out: named tensors whose bytes are read on demand, and a digest of the whole. A file that breaks
// the format is a *FormatError naming file, section and offset; a tensor that is not there is a *MissingTensorError.
package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"medusa/runners/reference/plainjson"
)

// Names of a checkpoint's files.
const (
	singleName = "model.safetensors"
	indexName  = "model.safetensors.index.json"
)

// MissingTensorError says that a checkpoint lacks a tensor.
type MissingTensorError struct {
	Dir, Name string
}

func (e *MissingTensorError) Error() string {
	return fmt.Sprintf("find tensor %q in checkpoint %s: no such tensor", e.Name, e.Dir)
}

// Checkpoint is an opened checkpoint.
type Checkpoint struct {
	dir     string
	files   []*file // by name
	tensors map[string]*Tensor
}

// Open opens the checkpoint in a directory and checks every header.
func Open(dir string) (*Checkpoint, error) {
	c := &Checkpoint{dir: dir, tensors: map[string]*Tensor{}}
	shards, listed, err := shardNames(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range shards {
		f, err := openFile(filepath.Join(dir, name))
		if err != nil {
			c.Close()
			return nil, err
		}
		c.files = append(c.files, f)
		for _, t := range f.tensors {
			if c.tensors[t.Name] != nil {
				c.Close()
				return nil, &FormatError{File: f.Name(), Section: "tensor " + t.Name, Offset: t.begin, Reason: "another shard has it too"}
			}
			c.tensors[t.Name] = t
		}
	}
	for _, name := range listed {
		if c.tensors[name] == nil {
			c.Close()
			return nil, &MissingTensorError{Dir: dir, Name: name}
		}
	}
	return c, nil
}

// shardNames returns the names of the files, and the tensors that the index promises if there is one.
func shardNames(dir string) (files, tensors []string, err error) {
	path := filepath.Join(dir, indexName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{singleName}, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open checkpoint: %w", err)
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := plainjson.Unmarshal(data, &index); err != nil {
		return nil, nil, &FormatError{File: path, Section: "index", Reason: err.Error()}
	}
	if len(index.WeightMap) == 0 {
		return nil, nil, &FormatError{File: path, Section: "weight_map", Reason: "it names no tensor"}
	}
	seen := map[string]bool{}
	for tensor, name := range index.WeightMap {
		if name != filepath.Base(name) || name == "." || name == ".." {
			return nil, nil, &FormatError{File: path, Section: "weight_map", Reason: fmt.Sprintf("%q is not a file name", name)}
		}
		seen[name] = true
		tensors = append(tensors, tensor)
	}
	slices.Sort(tensors)
	return slices.Sorted(maps.Keys(seen)), tensors, nil
}

// Close closes the files.
func (c *Checkpoint) Close() error {
	var err error
	for _, f := range c.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// Tensor returns a tensor by name, or a *MissingTensorError.
func (c *Checkpoint) Tensor(name string) (*Tensor, error) {
	if t := c.tensors[name]; t != nil {
		return t, nil
	}
	return nil, &MissingTensorError{Dir: c.dir, Name: name}
}

// Tensors returns all tensors, by name.
func (c *Checkpoint) Tensors() []*Tensor {
	var all []*Tensor
	for _, name := range slices.Sorted(maps.Keys(c.tensors)) {
		all = append(all, c.tensors[name])
	}
	return all
}
