package materialize

import "medusa/graphir"

// CompilePresumed is Compile as Run uses it: bytes that may be padding are taken for that, and runs are to prove it.
func CompilePresumed(a, b *Recording) (*graphir.Spec, error) {
	spec, _, err := compile(a, b)
	return spec, err
}
