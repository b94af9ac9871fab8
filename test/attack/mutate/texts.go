package mutate

import (
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Shouting returns the artifact with something appended to every text in it.
func (a *Artifact) Shouting(something string) ([]byte, error) {
	c := a.clone()
	for _, k := range c.ranks {
		for _, m := range []protoreflect.Message{k.manifest.ProtoReflect(), k.graph.ProtoReflect(), k.buffers.ProtoReflect()} {
			appendToTexts(m, something)
		}
		k.graph.Strings[0] = "" // which the format wants
	}
	return c.bytes()
}

func appendToTexts(m protoreflect.Message, something string) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case leftAlone(f):
		case f.IsList():
			list := v.List()
			for i := range list.Len() {
				if f.Message() != nil {
					appendToTexts(list.Get(i).Message(), something)
				} else if f.Kind() == protoreflect.StringKind {
					list.Set(i, protoreflect.ValueOfString(list.Get(i).String()+something))
				}
			}
		case f.Message() != nil:
			appendToTexts(v.Message(), something)
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(v.String()+something))
		}
		return true
	})
}
