package main

// nodes has one row for each mechanism that restores a kind of node, edge, attribute or pointer. Random programs catch
// them: each needs a feature that a few in a hundred programs have.
var nodes = []mutant{
	programs("event record and event wait", negate),
	programs("empty node", skip),
	programs("page-locked memory of the capture phase", replace("graphir.AllocPinned", "graphir.AllocPinned + 100")),
	programs("stream-ordered memory", replace("bytes", "bytes / 8")),
	programs("pool memory", replace("bytes", "bytes / 8")),
	programs("registered host memory", replace("bytes", "bytes / 8")),
	{"address of a memory operation", replace("m.Relocations", "m.Relocations[:1]"), "./test/e2e", "TestBothWays"},
	{"wait for a value that nobody writes", never, "./graphir", "TestMemoryOperations"},
	{"extent of a memory operation", replace("memOpTypes[op.Operation].size", "0"), "./graphir", "TestMemoryOperations"},
	programs("embedded graph", replace("Children[n.Target]", "Children[0]")),
	programs("event of the engine", replace("b.events[n.Target]", "b.events[0]")),
	programs("event of the capture phase", never),
	programs("bytes of pageable memory", skip),
	programs("host memory that changes", replace("memcmp(now, s.rows, size)", "memcmp(now, s.rows, 0)")),
	programs("managed memory", never),
	programs("memory freed before ready", never),
	programs("address of a variable", replace("= addr", "= addr + 4")),
	programs("content of a variable", skip),
	programs("variable that no graph reads", replace(" || !u.late[g.Module]", "")),
	programs("image loaded twice", replace("> 1", "> 9")),
	programs("arguments of a tensor map", replace("Swizzle: t.Swizzle", "Swizzle: 0")),
	programs("tensor map that moved", replace("v.Addr", "from.Addr")),
	programs("base of an access-policy window", replace("base)", "base+16)")),
	programs("bytes beside an attribute", skip),
	programs("data of an edge", replace("FromPort: e.FromPort, ToPort: e.ToPort, Type: e.Type", "ToPort: e.ToPort")),
	programs("one call an edge's data", replace("data(sorted[i]) == data(sorted[i-1])", "(data(sorted[i]) == data(sorted[i-1]) || i > 0)")),
	programs("attribute of a node", skip),
	programs("attributes keep templates apart", replace("append(binary.AppendUvarint(b, uint64(a.ID)), a.Value[:]...)", "binary.AppendUvarint(b, uint64(a.ID))")),
	programs("edge data keeps templates apart", replace("append(number(number(b, e.From), e.To), e.FromPort, e.ToPort, e.Type)", "number(number(b, e.From), e.To)")),
	programs("kernel of a template's member", replace("b.functions[k.Kernel]", "b.functions[0]")),
	programs("attribute of a function", replace("int(value)", "int(value)/2")),
	programs("attribute of a library's kernel", never),
	programs("attribute set on the function of a kernel", becomes("return s->kernel ? REAL(cuKernelGetAttribute)(value, attr, s->kernel, s->device) : REAL(cuFuncGetAttribute)(value, attr, own);")),
	programs("parameters as one buffer", never),
	programs("rows of host memory", replace("p->srcPitch", "width")),
	programs("height and depth of a copy", replace("Depth: m.Depth", "Depth: 1")),
	programs("values and rows of a memset", replace("Height: m.Height", "Height: 1")),
	programs("base of an access-policy window", replace("base)", "base-base+b.memory.Base[0]+a.Base.Offset)")),
	programs("stream of a launch", replace("stream", "0*stream")),
}

func programs(name string, c change) mutant {
	return mutant{name, c, "./test/programs", "TestPrograms"}
}
