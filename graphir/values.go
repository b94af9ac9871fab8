package graphir

import "medusa/graphir/graphpb"

// Nodes whose parameters are a fixed number of values have a column of them for each type.
const (
	memsetColumn = iota
	memcpyColumn
	valueColumns
)

// valueColumn is a column of the format with the values of one type's nodes.
type valueColumn struct {
	name string
	per  int                                    // values of a node
	wire func(*graphpb.Graph) **graphpb.Changes // its field
	make func(n int) any                        // memory for n nodes
}

var valueTable = [valueColumns]valueColumn{memsetColumn: memsetValues, memcpyColumn: memcpyValues}

func valuesOf[T any](name string, per int, wire func(*graphpb.Graph) **graphpb.Changes) valueColumn {
	return valueColumn{name, per, wire, func(n int) any { return make([]T, n) }}
}

// valued are parameters that a column of values has.
type valued interface {
	// read sets the parameters; false means that a value is too large for its field.
	read(values []uint64) bool
}
