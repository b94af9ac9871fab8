// Command gen turns a .proto file into Go without a protoc binary: protocompile parses it, and the library behind protoc-gen-go
// writes the code. Usage, in the file's own folder: gen FILE.proto OUT.pb.go
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: gen FILE.proto OUT.pb.go")
	}
	code, err := generate(args[0])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(args[1]), 0o755); err != nil {
		return err
	}
	return os.WriteFile(args[1], code, 0o644)
}

// generate returns the Go code for one .proto file without imports.
func generate(path string) ([]byte, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// Go's protobuf registry is global and keyed by file name. The folder makes the name unique.
	dir := filepath.Dir(path)
	name := filepath.Base(dir) + "/" + filepath.Base(path)
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{filepath.Dir(dir)}},
		SourceInfoMode: protocompile.SourceInfoStandard, // comments
	}
	files, err := compiler.Compile(context.Background(), name)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", name, err)
	}
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{name},
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protoutil.ProtoFromFileDescriptor(files[0])},
	})
	if err != nil {
		return nil, fmt.Errorf("generate %s: %w", name, err)
	}
	internal_gengo.GenerateFile(plugin, plugin.FilesByPath[name])
	response := plugin.Response()
	if response.Error != nil {
		return nil, fmt.Errorf("generate %s: %s", name, response.GetError())
	}
	return []byte(response.File[0].GetContent()), nil
}
