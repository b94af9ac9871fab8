package graphir

import (
	"bytes"
	"reflect"
)

// Equal says whether two Specs have the same contents. A nil slice equals an empty one. A Spec whose row groups cannot be read
// equals no other.
func Equal(a, b *Spec) bool {
	if a == nil || b == nil || len(a.Graphs) != len(b.Graphs) {
		return a == b
	}
	ca, cb := a.NewCursor(), b.NewCursor()
	for i := range a.Graphs {
		ga, errA := ca.Graph(i)
		gb, errB := cb.Graph(i)
		if errA != nil || errB != nil || !equal(reflect.ValueOf(ga), reflect.ValueOf(gb)) {
			return false
		}
	}
	restA, restB := *a, *b
	restA.Graphs, restA.Rows, restB.Graphs, restB.Rows = nil, nil, nil, nil
	return equal(reflect.ValueOf(&restA), reflect.ValueOf(&restB))
}

func equal(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return equal(a.Elem(), b.Elem())
	case reflect.Interface:
		if a.IsNil() || b.IsNil() || a.Elem().Type() != b.Elem().Type() {
			return a.IsNil() && b.IsNil()
		}
		return equal(a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		if a.Type().Elem().Kind() == reflect.Uint8 {
			return bytes.Equal(a.Bytes(), b.Bytes())
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	default:
		return a.Interface() == b.Interface()
	}
}
